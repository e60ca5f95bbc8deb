(() => {
  "use strict";
  const root = document.documentElement;
  const errors = [];
  addEventListener("error", (event) => {
    errors.push(event.message);
    root.dataset.errors = errors.join("; ");
  });
  const live = document.getElementById("live");

  const copy = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // without the permission or a secure context: the old way
      const area = document.createElement("textarea");
      area.value = text;
      area.className = "away";
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      if (!done) throw new Error("the browser refused");
    }
  };

  // of the panels that stand for one thing each, those of the button's are shown
  const choose = (button, key, panel) => {
    const chosen = button.dataset[key];
    for (const other of document.querySelectorAll(`[data-${key}]`))
      other.setAttribute("aria-pressed", other.dataset[key] === chosen);
    for (const panels of document.querySelectorAll(`[data-${panel}]`)) panels.hidden = panels.dataset[panel] !== chosen;
    live.textContent = `Charts show ${button.title}`;
  };

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button");
    if (button?.dataset.copy !== undefined) {
      const name = button.dataset.name;
      try {
        await copy(button.dataset.copy);
        button.textContent = "Copied";
        live.textContent = `${name} copied`;
      } catch {
        button.textContent = "Not allowed";
        live.textContent = `${name} could not be copied`;
      }
      button.focus();
      setTimeout(() => (button.textContent = name), 1500);
    } else if (button?.dataset.show) choose(button, "show", "metric");
    else if (button?.dataset.pick) choose(button, "pick", "model");
  });

  // on paper, how it was made is unfolded
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open], .table *)")) {
      details.open = true;
      details.dataset.printed = "";
    }
  });
  addEventListener("afterprint", () => {
    for (const details of document.querySelectorAll("details[data-printed]")) details.open = false;
  });

  JSON.parse(document.getElementById("crypsis-data").textContent);
  root.dataset.ready = "1";
})();
