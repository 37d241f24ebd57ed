// The page: it asks Python, in a worker, and shows the answers.
"use strict";

const PART = 20000; // Instructions between two looks at the buttons.
const at = (id) => document.getElementById(id);

// Questions.

const worker = new Worker("worker.js");
const waiting = new Map();
let asked = 0;

function ask(action, details = {}) {
  const id = ++asked;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    worker.postMessage({ id, question: JSON.stringify({ action, ...details }) });
  });
}

worker.onmessage = ({ data }) => {
  if (data.ready) {
    at("status").textContent = "Python is ready";
    for (const id of ["stereo-run", "trim", "trim-stereo"]) at(id).disabled = false;
  } else if (data.failed) {
    at("status").textContent = `Python does not load: ${data.failed}`;
  } else {
    waiting.get(data.id)(JSON.parse(data.answer));
    waiting.delete(data.id);
  }
};
worker.onerror = (event) => {
  at("status").textContent = `Python does not load: ${event.message || "the page needs a web server"}`;
};

// Tabs: arrows move between them.

const tabs = [...document.querySelectorAll("[role=tab]")];

function choose(tab) {
  for (const each of tabs) {
    const chosen = each === tab;
    each.setAttribute("aria-selected", chosen);
    each.tabIndex = chosen ? 0 : -1;
    at(each.getAttribute("aria-controls")).hidden = !chosen;
  }
  tab.focus();
}

for (const tab of tabs) {
  tab.onclick = () => choose(tab);
  tab.onkeydown = ({ key }) => {
    const way = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (way) choose(tabs[(tabs.indexOf(tab) + way + tabs.length) % tabs.length]);
  };
}

// Elements.

function element(name, text = "", properties = {}) {
  return Object.assign(document.createElement(name), { textContent: text }, properties);
}

function row(cells, name = "td") {
  const found = element("tr");
  found.append(...cells.map((cell) => element(name, cell)));
  return found;
}

// The program.

const view = () => ({ space: at("space").value, start: at("start").value, kind: at("kind").value });
const controls = ["step", "back", "run", "check"];
let running = false;
let ended = false;

function ready(loaded) {
  for (const id of controls) at(id).disabled = !loaded;
  if (ended) at("step").disabled = at("run").disabled = true;
}

function show(answer) {
  at("message").textContent = answer.error || "";
  if (answer.error) return;
  const { state, fault, hit, time, pc, settings } = answer;
  ended = state !== "stopped";
  at("message").textContent = fault;
  const how = hit ? "breakpoint" : state;
  at("where").textContent =
    `${how} at word ${pc}, ${time} instructions, VL ${settings.vl}, MR ${settings.mr}, FX ${settings.fx}`;
  for (const line of at("listing").children) {
    const current = Number(line.dataset.address) === pc;
    line.classList.toggle("current", current);
    if (current) line.toggleAttribute("aria-current", true);
    else line.removeAttribute("aria-current");
    if (current) {
      const box = at("listing");
      const top = line.offsetTop - box.offsetTop;
      if (top < box.scrollTop || top > box.scrollTop + box.clientHeight - 30) box.scrollTop = top - 60;
    }
  }
  at("registers").replaceChildren(
    row(["register", "hexadecimal", "signed"], "th"),
    ...answer.registers.map((each) => {
      const found = row([`r${each.number}`, each.hex, each.signed]);
      found.className = each.changed ? "changed" : "";
      return found;
    }),
  );
  at("matrix").replaceChildren(...answer.matrix.map((each) => row([each.address, ...each.values])));
}

function list(words) {
  at("listing").replaceChildren(
    ...words.map((word) => {
      const labels = word.labels.map((name) => `${name}:`).join(" ");
      const code = word.word.toString(16).padStart(8, "0");
      const text = `${String(word.address).padStart(4)}  ${code}  ${labels.padEnd(8)} ${word.text}`;
      const line = element("button", text, { title: `line ${word.line}: ${word.source.trim()}` });
      line.dataset.address = word.address;
      line.setAttribute("aria-pressed", "false");
      line.onclick = async () => {
        await ask("toggle", { address: word.address });
        line.setAttribute("aria-pressed", line.getAttribute("aria-pressed") !== "true");
      };
      return line;
    }),
  );
}

at("assemble").onclick = async () => {
  running = false;
  const answer = await ask("assemble", {
    source: at("source").value, data: at("data").value, view: view(),
  });
  if (!answer.error) list(answer.listing);
  show(answer);
  if (!answer.error) ready(true);
};
at("step").onclick = async () => { show(await ask("forward", { count: 1, view: view() })); ready(true); };
at("back").onclick = async () => { show(await ask("back", { view: view() })); ready(true); };
at("run").onclick = async () => {
  if (running) {
    running = false;
    return;
  }
  running = true;
  ready(false);
  at("run").disabled = false;
  at("run").textContent = "Stop";
  let answer;
  do {
    answer = await ask("forward", { count: PART, view: view() });
    show(answer);
  } while (running && !answer.error && answer.state === "stopped" && !answer.hit);
  running = false;
  at("run").textContent = "Run";
  ready(true);
};
at("check").onclick = async () => {
  const { error, hazards } = await ask("hazards");
  at("message").textContent = error || hazards.join("\n");
  if (!error && !hazards.length) at("where").textContent = "No timing rule is broken";
};
for (const id of ["space", "start", "kind"]) {
  at(id).onchange = async () => { if (!at("back").disabled) show(await ask("show", { view: view() })); };
}

// Depth from stereo.

function draw(id, labels, count) {
  const canvas = at(id);
  const context = canvas.getContext("2d");
  const picture = context.createImageData(canvas.width, canvas.height);
  labels.flat().forEach((label, pixel) => {
    const grey = label < 0 ? 0 : 40 + (215 * label) / (count - 1);
    picture.data.set([grey, grey, grey, 255], 4 * pixel);
  });
  context.putImageData(picture, 0, 0);
}

at("stereo-run").onclick = async () => {
  at("stereo-run").disabled = true;
  at("stereo-result").textContent = "";
  let answer = await ask("stereo", { iterations: Number(at("iterations").value) });
  while (!answer.error) {
    answer = await ask("stereo_forward", { count: PART });
    if (answer.error) break;
    draw("depth", answer.labels, answer.count);
    draw("truth", answer.truth, answer.count);
    const ran = `${answer.instructions.toLocaleString("en")} instructions in ${answer.seconds} s`;
    if (answer.state === "running") {
      at("stereo-result").textContent = ran;
      continue;
    }
    const equal = answer.different
      ? `${answer.different} numbers differ from the golden model`
      : `all ${answer.messages.toLocaleString("en")} messages equal the golden model's`;
    at("stereo-result").textContent =
      `${answer.state}: ${ran}; ${equal}; ${answer.wrong} % of the pixels are more than a label off`;
    break;
  }
  at("stereo-message").textContent = answer.error || "";
  at("stereo-run").disabled = false;
};

// Trimming.

async function trim(action, details) {
  at("trim").disabled = at("trim-stereo").disabled = true;
  const answer = await ask(action, details);
  at("trim").disabled = at("trim-stereo").disabled = false;
  at("trim-message").textContent = answer.error || "";
  at("trim-result").replaceChildren();
  if (answer.error) return;
  const sizes = element("table");
  sizes.append(row(["size", "full", "trimmed", "because"], "th"));
  for (const each of answer.sizes) sizes.append(row([each.name, each.full, each.size, each.why]));
  const units = element("table");
  units.append(row(["unit", "kept", "removed", "because"], "th"));
  for (const each of answer.units) units.append(row([each.unit, each.kept.length, each.removed, each.why]));
  const wide = (table) => {
    const box = element("div", "", { className: "scroll", style: "max-height:none" });
    box.append(table);
    return box;
  };
  at("trim-result").append(
    element("p", `${answer.after} of ${answer.before} instructions stay.`),
    element("h2", "Sizes"), wide(sizes), element("h2", "Instructions"), wide(units),
  );
}

at("trim").onclick = () => trim("trim", { source: at("source").value });
at("trim-stereo").onclick = () => trim("trim_stereo");
