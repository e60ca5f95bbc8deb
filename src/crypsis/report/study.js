(() => {
  "use strict";
  const root = document.documentElement;
  const errors = [];
  addEventListener("error", (event) => {
    errors.push(event.message);
    root.dataset.errors = errors.join("; ");
  });

  const study = JSON.parse(document.getElementById("study").textContent);
  const find = (id) => document.getElementById(id);
  const place = `crypsis-study/${study.id}`;
  const SHOWN = 150; // ms a pair is seen before it can be answered: a double click is one answer
  let who = 0;
  let choices = ""; // of the current participant, "l" or "r" for each trial answered
  let since = 0;

  const keep = (key, value) => {
    try {
      localStorage.setItem(place + key, value);
    } catch {
      find("lost").hidden = false;
    }
  };
  const kept = (key) => {
    try {
      return localStorage.getItem(place + key) ?? "";
    } catch {
      find("lost").hidden = false;
      return "";
    }
  };

  const show = (name) => {
    for (const id of ["start", "run", "done"]) find(id).hidden = id !== name;
    root.dataset.shown = name;
  };
  const trials = () => study.lists[who - 1];

  const step = () => {
    keep(`/${who}`, choices);
    find("saved").textContent = "";
    const [at, all] = [choices.length, trials().length];
    if (at === all) {
      show("done");
      find("done").querySelector("h2").focus();
      return;
    }
    const came = find("run").hidden;
    show("run");
    const [left, right] = trials()[at];
    find("left").querySelector("img").src = study.pictures[left];
    find("right").querySelector("img").src = study.pictures[right];
    find("progress").max = all;
    find("progress").value = at;
    find("count").textContent = `Pair ${at + 1} of ${all}`;
    since = performance.now();
    if (came) find("question").focus();
  };
  const choose = (side) => {
    if (performance.now() - since < SHOWN) return;
    choices += side;
    step();
  };
  const back = () => {
    choices = choices.slice(0, -1);
    step();
  };
  const begin = (number) => {
    who = number;
    keep("", who);
    const before = kept(`/${who}`);
    choices = /^[lr]*$/.test(before) ? before.slice(0, trials().length) : "";
    step();
  };
  const restart = () => {
    who = 0;
    keep("", "");
    find("begin").reset();
    show("start");
    find("number").focus();
  };

  const quoted = (text) => `"${text.replaceAll('"', '""')}"`;
  const votes = () => {
    const lines = ["participant,left,right,choice,answer,species"];
    [...choices].forEach((side, i) => {
      const [left, right, answer, species] = trials()[i];
      const choice = side === "l" ? "left" : "right";
      lines.push([`${who}`, study.names[left], study.names[right], choice, answer, species].map(quoted).join(","));
    });
    return `${lines.join("\n")}\n`;
  };
  const save = () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([votes()], { type: "text/csv" }));
    link.download = `votes-${who}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    find("saved").textContent = `Saved as ${link.download}.`;
  };

  // on paper: all pairs of a list, with boxes to tick
  const element = (name, text = "") => Object.assign(document.createElement(name), { textContent: text });
  const lay = (number) => {
    const list = element("ol");
    for (const pair of study.lists[number - 1]) {
      const row = element("li");
      ["A", "B"].forEach((letter, i) => {
        const image = Object.assign(element("img"), { src: study.pictures[pair[i]], alt: "", decoding: "sync" });
        const figure = element("figure");
        figure.append(image, element("figcaption", `☐ ${letter}`));
        row.append(figure);
      });
      list.append(row);
    }
    const title = element("h2", `Participant ${number}. ${find("question").textContent}`);
    find("paper").replaceChildren(title, list);
    find("paper").hidden = false;
  };
  addEventListener("beforeprint", () => {
    const number = who || find("number").valueAsNumber;
    if (study.lists[number - 1]) lay(number);
  });
  addEventListener("afterprint", () => {
    find("paper").hidden = true;
    find("paper").replaceChildren();
  });

  find("begin").addEventListener("submit", (event) => {
    event.preventDefault();
    begin(find("number").valueAsNumber);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.id === "left") choose("l");
    else if (button?.id === "right") choose("r");
    else if (button?.id === "next") restart();
    else if (button?.id === "print") {
      if (find("number").reportValidity()) print();
    } else if (button?.dataset.back !== undefined) back();
    else if (button?.dataset.save !== undefined) save();
  });
  document.addEventListener("keydown", (event) => {
    if (find("run").hidden || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { ArrowLeft: () => choose("l"), ArrowRight: () => choose("r"), Backspace: back }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  addEventListener("beforeunload", (event) => {
    if (who && !find("lost").hidden) event.preventDefault();
  });

  const last = Number(kept(""));
  const named = Number(location.hash.slice(1)); // study.html#7 is for participant 7
  if (study.lists[named - 1]) find("number").value = named;
  if (study.lists[last - 1] && (!named || named === last)) begin(last);
  else show("start");
  root.dataset.ready = "1";
})();
