"use strict";
/* The behaviour of the report. Whatever comes from data becomes text nodes, never markup. */
(() => {
  const byId = (id) => document.getElementById(id);
  let parsed;
  const data = () => (parsed ??= JSON.parse(byId("data").textContent));

  /** An element with attributes and children; strings become text. */
  function el(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes ?? {})) {
      if (value !== undefined && value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
    return node;
  }

  const unpacked = new Map();
  /** What a block of compressed data holds, read once. */
  function unpack(id) {
    if (!unpacked.has(id)) unpacked.set(id, inflate(byId(id).textContent));
    return unpacked.get(id);
  }
  async function inflate(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  /* The checkpoint rule is a switch over one table: the tables of all rules are sorted and filtered alike. */
  const tables = [...document.querySelectorAll("table.results")];
  let shown;
  function choose(name) {
    if (!tables.some((table) => table.dataset.name === name)) return;
    shown = name;
    for (const section of document.querySelectorAll("#results > section")) section.hidden = section.id !== name;
    const input = document.querySelector(`input[name=rule][value=${name}]`);
    if (input) input.checked = true;
  }

  /* Sorting: first the sensible order, then the other one, then that of the suite. */
  const words = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  const OTHER = { ascending: "descending", descending: "ascending" };
  function sort(heading) {
    const text = heading.classList.contains("words");
    const first = text ? "ascending" : "descending";
    const now = heading.getAttribute("aria-sort");
    const next = now === null ? first : now === first ? OTHER[first] : null;
    tables.forEach((table) => order(table, heading.cellIndex, next, text));
    const name = heading.querySelector("button").textContent;
    say(next === null ? "In the order of the suite" : `Sorted by ${name}, ${next}`);
  }

  function order(table, column, next, text) {
    for (const heading of table.tHead.rows[0].cells) heading.removeAttribute("aria-sort");
    if (next !== null) table.tHead.rows[0].cells[column].setAttribute("aria-sort", next);
    const sign = next === "descending" ? -1 : 1;
    const value = (row) => {
      const cell = row.cells[column];
      return text ? cell.textContent : cell.dataset.v === undefined ? null : Number(cell.dataset.v);
    };
    const rows = [...table.tBodies[0].rows].map((row) => ({ row, value: next === null ? null : value(row) }));
    rows.sort((a, b) => {
      if (next === null || a.value === b.value) return a.row.place - b.row.place;
      if (a.value === null || b.value === null) return a.value === null ? 1 : -1;
      return sign * (text ? words.compare(a.value, b.value) : a.value - b.value) || a.row.place - b.row.place;
    });
    table.tBodies[0].append(...rows.map((item) => item.row));
  }

  function filter(wanted) {
    const parts = wanted.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of tables.flatMap((table) => [...table.tBodies[0].rows])) {
      row.words ??= row.cells[0].textContent.toLowerCase();
      row.hidden = !parts.every((part) => row.words.includes(part));
    }
    const rows = [...tables[0].tBodies[0].rows];
    say(parts.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "");
  }

  function say(text) {
    byId("said").textContent = text;
  }

  async function copy(button) {
    let text;
    try {
      text = (await unpack(`copies-${shown.slice(1)}`))[button.dataset.copy];
    } catch {
      say(`This browser is too old to copy; bench report ${data().run} --format ${button.dataset.copy} prints it`);
      return;
    }
    try {
      await navigator.clipboard.writeText(text);
      say(`${button.textContent} copied`);
    } catch {
      byId("copy-text").value = text;
      byId("copy").showModal();
      byId("copy-text").select();
    }
  }

  /* What stands behind a cell. */
  const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(2));
  const seconds = (value) => (value ? `${value.toFixed(value < 1 ? 2 : value < 100 ? 1 : 0)} s` : "–");
  const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
  const LABELS = { parameters: "Parameters", environments: "Environments in training" };

  /** A table; the first columns are words, as many as told. */
  function table(label, headings, rows, left = 1) {
    const align = (i) => i < left && "words";
    const head = headings.map((text, i) => el("th", { scope: "col", class: align(i) }, text));
    const body = rows.map((cells) =>
      el("tr", {}, cells.map((cell, i) => el(i ? "td" : "th", { scope: i ? null : "row", class: align(i) }, cell))),
    );
    const made = el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
    return el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, made);
  }
  const facts = (pairs) =>
    el("dl", {}, pairs.filter((pair) => pair[1]).map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
  const part = (title, ...content) => [el("h3", {}, title), ...content];

  function seeds(cell) {
    const all = data();
    const rows = cell.seeds.map(([test, validation, training, epoch, status = "ok"], i) => {
      const run = all.trainings[training] ?? {};
      return [
        String(all.seeds[i]), percent(test), percent(validation), epoch === null ? "–" : String(epoch), status,
        seconds(run.seconds), run.memory ?? "–", el("code", {}, run.cell ?? "–"),
      ];
    });
    const heads = ["Seed", "Test, %", "Validation, %", "Epoch (from 0)", "Status", "Training", "Peak memory", "Cell"];
    const said = cell.seeds.flatMap(([, , , , status = "ok", reason = null], i) =>
      reason === null ? [] : [el("li", { class: status !== "ok" && "was-bad" }, `Seed ${all.seeds[i]}: ${all.texts[reason]}`)],
    );
    return part("Seeds", table("Seeds", heads, rows), said.length ? el("ul", {}, said) : null);
  }

  function trainings(cell) {
    const all = data();
    const runs = cell.seeds.map((seed) => all.trainings[seed[2]] ?? {});
    const pairs = Object.entries(LABELS).map(([name, label]) => [label, [...new Set(runs.map((run) => run[name]).filter(Boolean))].join(", ")]);
    const kinds = [...new Set(runs.flatMap((run) => Object.keys(run.stages ?? {})))];
    const stages = kinds.map((kind) => [kind, ...runs.map((run) => seconds(run.stages?.[kind]))]);
    const heads = ["Stage", ...all.seeds.map((seed) => `Seed ${seed}`)];
    const ids = runs.map((run) => run.cell).filter(Boolean);
    const look = ids.length && el("ul", {}, [
      [`bench reproduce ${ids[0]}`, "runs it again and compares"],
      [`bench export ${all.run} --cell ${ids[0]} --what predictions,checkpoints -o cell-${ids[0]}`, "writes its predictions and weights"],
    ].map(([command, does]) => el("li", {}, el("code", {}, command), ` ${does}`)));
    return part("Cost", facts(pairs), stages.length ? table("Seconds of each stage", heads, stages) : null, look);
  }

  function grid(cell) {
    if (!cell.grid) return [];
    const texts = data().texts;
    const heads = ["Configuration", "Difference to the selected one", "Validation, %", "Seeds lost"];
    const rows = (tests) => cell.grid.map(([name, changes, validation, test, lost]) => {
      const chosen = texts[name] === cell.configuration;
      return [el("span", { class: chosen && "differs" }, texts[name] + (chosen ? " (selected)" : "")), texts[changes] || "–",
        percent(validation), lost || "–", ...(tests ? [percent(test)] : [])];
    });
    const place = el("div");
    const show = (tests) => place.replaceChildren(table("Configurations", tests ? [...heads, "Test, %"] : heads, rows(tests), 2));
    const box = el("input", { type: "checkbox" });
    box.addEventListener("change", () => show(box.checked));
    show(false);
    const open = el("label", { class: "hint" }, box, " Show test scores of all configurations; to choose by them is to choose on test data");
    const more = cell.configurations - cell.grid.length;
    return part("Search", place, open, more > 0 ? el("p", {}, `And ${more} more configurations.`) : null);
  }

  function settings(cell) {
    const all = data();
    if (cell.settings === undefined) return [];
    const shown = part("Settings", el("details", {}, el("summary", {}, "Everything that is set for this cell"),
      facts(all.settings[cell.settings]),
      el("p", { class: "hint" }, "Hyperparameters that are not here have the defaults of their component: bench describe NAME.")));
    if (cell.against === undefined) return shown;
    const rows = all.differences[cell.against].map(([name, mine, theirs]) => [name, mine || "–", theirs || "–"]);
    const title = `Difference to ${all.reference}`;
    return [...shown, ...part(title, rows.length ? table(title, ["Setting", "Here", all.reference], rows, 3) : el("p", {}, "None."))];
  }

  function failures(cell) {
    const all = data();
    const traces = [...new Set(cell.seeds.map((seed) => all.trainings[seed[2]]?.traceback).filter(Boolean))];
    if (!traces.length) return [];
    const log = byId("log") && el("p", {}, el("a", { href: "#log" }, "What the workers printed"));
    return part("Why it failed", ...traces.map((text) => el("pre", { tabindex: "0" }, text)), log);
  }

  /* Learning curves, drawn when they are looked at. */
  const COLOURS = 5;
  let charts = [];
  function colour(name) {
    const probe = document.body.appendChild(el("span"));
    probe.style.color = `var(--${name})`;
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  async function curves(cell, metric, place) {
    const all = data();
    let found;
    try {
      found = await unpack("curves");
    } catch {
      place.replaceChildren(el("p", {}, "This browser is too old to unpack the learning curves."));
      return;
    }
    const lines = cell.seeds.flatMap((seed, i) => {
      const drawn = found[seed[2]];
      return drawn ? [{ seed: all.seeds[i], chosen: seed[3], ...drawn }] : [];
    });
    if (!lines.length) {
      place.replaceChildren(el("p", {}, "No training of this cell has left a history in the store."));
      return;
    }
    const names = [...new Set(lines.flatMap((line) => Object.keys(line.series)))];
    place.replaceChildren(...names.map((name) => draw(name, metric, lines.filter((line) => line.series[name]))));
    requestAnimationFrame(() => charts.forEach((chart) => chart.paint()));
  }

  function draw(name, metric, lines) {
    const score = name.startsWith("score/");
    const scale = (value) => (value === null ? null : score ? 100 * value : value);
    const title = score ? `${capital(metric)} on ${name.slice(6)}, %` : `Training: ${name === "loss" ? "weighted loss" : name}, mean over batches`;
    const ends = lines.map((line) => {
      const values = line.series[name].map(scale).filter((value) => value !== null);
      return `seed ${line.seed} from ${values[0]?.toPrecision(3)} to ${values.at(-1)?.toPrecision(3)}`;
    });
    const box = el("div", { role: "img", "aria-label": `${title} by epoch: ${ends.join("; ")}` });
    const figure = el("figure", {}, el("figcaption", {}, title), box);
    const joined = uPlot.join(lines.map((line) => [line.epochs, line.series[name].map(scale)]));
    charts.push({ chart: null, paint() {
      this.chart?.destroy();
      this.chart = new uPlot(options(box, lines), joined, box);
    } });
    return figure;
  }

  function options(box, lines) {
    const axis = { stroke: colour("muted"), grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 }, font: "12px system-ui" };
    const series = lines.map((line, i) => ({
      label: `seed ${line.seed}`, stroke: colour(`line-${(i % COLOURS) + 1}`), width: 1.75, spanGaps: true,
      dash: i < COLOURS ? undefined : [6, 3], points: { show: line.epochs.length < 3 },
      value: (_, value) => (value === null || value === undefined ? "–" : value.toPrecision(4)),
    }));
    const mark = (plot) => lines.forEach((line, i) => {
      const at = plot.data[0].indexOf(line.chosen);
      const value = at < 0 ? null : plot.data[i + 1][at];
      if (value === null || value === undefined) return;
      plot.ctx.fillStyle = series[i].stroke;
      plot.ctx.beginPath();
      plot.ctx.arc(plot.valToPos(line.chosen, "x", true), plot.valToPos(value, "y", true), 4 * devicePixelRatio, 0, 7);
      plot.ctx.fill();
    });
    return {
      width: Math.max(box.clientWidth, 200), height: 190, legend: { live: true }, scales: { x: { time: false } },
      axes: [{ ...axis, label: "epoch", labelSize: 18, labelFont: "12px system-ui", size: 30 }, { ...axis, size: 52 }],
      series: [{ label: "epoch", value: (_, value) => value ?? "–" }, ...series], hooks: { draw: [mark] }, cursor: { drag: { x: true, y: false } },
    };
  }

  function repaint() {
    charts.forEach((chart) => chart.paint());
  }

  /* The address #TABLE/COLUMN/METHOD opens a cell. */
  function decoded(part) {
    try {
      return decodeURIComponent(part);
    } catch {
      return part; // a damaged link leads nowhere
    }
  }

  function wanted() {
    const parts = location.hash.slice(1).split("/");
    if (parts.length !== 3) return null;
    const [name, label, method] = parts.map(decoded);
    const all = data();
    const found = all.tables.find((item) => item.name === name);
    const column = all.columns.findIndex((item) => item.label === label);
    const cell = found?.cells[all.methods.indexOf(method)]?.[column];
    return cell ? { cell, label, method, metric: all.columns[column].metric } : null;
  }

  function open() {
    choose(location.hash.slice(1).split(/[/-]/)[0]);
    const found = wanted();
    const dialog = byId("cell");
    if (!found) {
      if (dialog.open) dialog.close();
      return;
    }
    const { cell, label, method, metric } = found;
    const all = data();
    charts = [];
    const place = el("div", { class: "charts" });
    const close = el("button", { type: "button" }, "Close");
    close.addEventListener("click", () => dialog.close());
    byId("cell-body").replaceChildren(
      el("div", { class: "bar" }, el("h2", { id: "cell-title", tabindex: "-1" }, `${method} on ${label}`), close),
      facts([
        ["Test", cell.value], ["Validation", cell.validation], [`Difference to ${all.reference}`, cell.difference],
        ["Configuration", cell.configuration === "-" ? "" : cell.configuration], ["Environments", cell.environments],
      ]),
      ...[...failures(cell), ...seeds(cell),
        ...part("Learning curves", el("p", { class: "hint" }, "A dot marks the epoch of the checkpoint."), place),
        ...grid(cell), ...settings(cell), ...trainings(cell)].filter(Boolean),
    );
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    byId("cell-title").focus();
    curves(cell, metric, place);
  }

  function start() {
    for (const results of tables) {
      [...results.tBodies[0].rows].forEach((row, place) => { row.place = place; });
      results.tHead.addEventListener("click", (event) => {
        const button = event.target.closest("button");
        if (button) sort(button.closest("th"));
      });
    }
    byId("filter").addEventListener("input", (event) => filter(event.target.value));
    for (const input of document.querySelectorAll("input[name=rule]")) input.addEventListener("change", () => choose(input.value));
    choose("t1");
    for (const button of document.querySelectorAll("button[data-copy]")) button.addEventListener("click", () => copy(button));
    byId("cell").addEventListener("close", () => { if (wanted()) history.replaceState(null, "", "#"); });
    addEventListener("hashchange", open);
    addEventListener("resize", () => { clearTimeout(repaint.timer); repaint.timer = setTimeout(repaint, 150); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
    themes();
    printing();
    open();
  }

  /** Paper has nothing to click: tables that are folded are printed unfolded. */
  function printing() {
    let unfolded = [];
    addEventListener("beforeprint", () => {
      unfolded = [...document.querySelectorAll("details.printed:not([open])")];
      unfolded.forEach((details) => { details.open = true; });
    });
    addEventListener("afterprint", () => unfolded.forEach((details) => { details.open = false; }));
  }

  function themes() {
    const order = ["system", "light", "dark"];
    const button = byId("theme");
    const show = (theme) => {
      document.documentElement.dataset.theme = theme;
      button.textContent = `Colours: ${theme}`;
      repaint();
    };
    button.addEventListener("click", () => {
      const theme = order[(order.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % order.length];
      show(theme);
      try { localStorage.setItem("bench-theme", theme); } catch { /* a browser without storage forgets it */ }
    });
    try { show(localStorage.getItem("bench-theme") ?? "system"); } catch { show("system"); }
  }

  start();
})();
