(() => {
  "use strict";
  const root = document.documentElement;
  const errors = [];
  addEventListener("error", (event) => {
    errors.push(event.message);
    root.dataset.errors = errors.join("; ");
  });

  const entries = [...document.querySelectorAll(".entry")];
  const filters = [...document.querySelectorAll("[data-filter]")];
  const count = document.querySelector(".filters output");
  const filter = () => {
    for (const entry of entries)
      entry.hidden = filters.some((f) => f.value && entry.dataset[f.dataset.filter] !== f.value);
    count.textContent = `${entries.filter((entry) => !entry.hidden).length} shown`;
  };
  for (const select of filters) select.addEventListener("change", filter);

  const dialog = document.querySelector("dialog");
  const title = document.getElementById("enlarged-title");
  const more = document.getElementById("enlarged-more");
  const degraded = document.getElementById("enlarged");
  const under = document.getElementById("enlarged-clean");
  const slide = dialog.querySelector("input");
  let current = null;
  const buttons = () => [...document.querySelectorAll(".entry:not([hidden]) .enlarge")];
  const reveal = () => (degraded.style.clipPath = `inset(0 0 0 ${slide.value}%)`);
  const show = (button) => {
    current = button;
    title.textContent = button.dataset.label;
    more.textContent = button.dataset.more;
    degraded.src = button.firstElementChild.src;
    degraded.alt = button.dataset.label;
    under.src = document.getElementById("clean").src;
    reveal();
    if (!dialog.open) dialog.showModal();
  };
  slide.addEventListener("input", reveal);
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.classList.contains("enlarge")) show(button);
    else if (button?.dataset.step) {
      const all = buttons();
      show(all[(all.indexOf(current) + Number(button.dataset.step) + all.length) % all.length]);
    } else if (button?.dataset.close !== undefined || event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => current?.focus());
  root.dataset.ready = "1";
})();
