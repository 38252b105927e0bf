
// Adds what a page can do without: zoom, copying, a theme switch, and links that open the fold they point into.
// Text from the case is only ever written with textContent.
(() => {
  "use strict";
  const root = document.documentElement;
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  root.classList.add("on");

  // Theme: the reader's system decides until the button does.
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const themeButton = $("#theme");
  const theme = (name) => {
    if (name) root.dataset.theme = name;
    themeButton.textContent = dark() ? "Light" : "Dark";
    if (charts.length) draw();
  };
  let charts = [];
  themeButton.addEventListener("click", () => theme(dark() ? "light" : "dark"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => theme());

  // Copying: the clipboard where the browser allows it, else the text is selected for the reader to copy.
  const copy = async (button, text, element) => {
    const label = button.dataset.label || (button.dataset.label = button.textContent);
    let done = "Copied";
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      if (element) {
        for (let e = element; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
        getSelection().selectAllChildren(element);
      }
      done = document.execCommand && document.execCommand("copy") ? "Copied" : element ? "Selected" : "Not allowed here";
    }
    button.textContent = done;
    setTimeout(() => { button.textContent = label; }, 1600);
  };
  $$("button.copy").forEach((b) => b.addEventListener("click", () => copy(b, b.previousElementSibling.textContent, b.previousElementSibling)));
  const text = (id) => $(id).textContent;
  $("#copy-summary").addEventListener("click", (e) => copy(e.currentTarget, text("#summary"), $("#summary")));
  $("#copy-json").addEventListener("click", (e) => copy(e.currentTarget, JSON.stringify(data(), null, 1), null));

  // Links open every fold around their target, and the target itself.
  const reveal = () => {
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(1)); } catch { return; }
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (e) => {
    const link = e.target.closest && e.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  reveal();

  // Paper has no folds and no canvas.
  let opened = [];
  addEventListener("beforeprint", () => {
    still();
    opened = $$("details:not([open])");
    opened.forEach((d) => { d.open = true; });
  });
  addEventListener("afterprint", () => { opened.forEach((d) => { d.open = false; }); opened = []; });

  // The explorer: the drawn panels become uPlot charts on one axis, in place, once the reader zooms.
  let parsed;
  const data = () => parsed || (parsed = JSON.parse(text("#case")));
  const stack = $("#stack");
  if (!stack) { theme(); return; }
  const figures = $$(".panel", stack), readout = $("#readout");
  if (matchMedia("(pointer: fine)").matches) readout.textContent = "Drag across a chart to zoom.";
  const idle = readout.textContent;
  let whole = null, range = null;

  const number = (v, digits = 4) => v == null ? "–" : v === 0 || (Math.abs(v) >= 1e-3 && Math.abs(v) < 1e6)
    ? String(+v.toPrecision(digits)) : (+v.toPrecision(digits)).toExponential();
  const round = (u, vs) => vs.map((v) => v != null && u.scales.y.max / u.scales.y.min > 100 && Math.log10(v) % 1 ? null : v);
  const starts = () => (data().run.attempts || []).filter((a) => a.steps && a.steps[0] != null).map((a) => [a.index, a.steps[0]]);
  const columns = (indices) => {
    const tables = [], names = [], odd = []; // odd: steps with NaN or infinity, drawn on the upper edge
    for (const i of indices) {
      const series = data().timeline.series[i];
      for (const life of series.lives || []) {
        const points = (life.points || []).filter((p) => typeof p[0] === "number").sort((a, b) => a[0] - b[0]);
        if (!points.length) continue;
        // What a later attempt did again is drawn as on paper: grey, and beneath what stands.
        const later = series.lives.some((l) => l.attempt > life.attempt && (l.points || []).length);
        const cut = later ? Math.min(...starts().filter(([a]) => a > life.attempt).map(([, s]) => s)) : Infinity;
        odd.push(...points.filter((p) => typeof p[1] === "string").map((p) => p[0]));
        for (const old of [true, false]) {
          const part = points.filter((p) => (p[0] >= cut) === old);
          if (!part.length || (old && i !== indices[0])) continue;
          tables.push([part.map((p) => p[0]), part.map((p) => typeof p[1] === "number" ? p[1] : null)]);
          names.push({ metric: series.metric, attempt: life.attempt, beside: i !== indices[0], old });
        }
      }
    }
    return { joined: tables.length ? uPlot.join(tables) : [[], []], names, odd };
  };
  const color = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };
  const clock = (step) => {
    let found = null;
    for (const life of data().timeline.clock || []) {
      const p = life.points || [];
      if (!p.length || step < p[0][0] || step > p[p.length - 1][0]) continue;
      let i = p.findIndex((q) => q[0] >= step);
      const [s1, t1] = p[i], [s0, t0] = p[Math.max(i - 1, 0)];
      found = s1 === s0 ? t1 : t0 + (t1 - t0) * (step - s0) / (s1 - s0);
    }
    return found === null ? "" : `, ${new Date(found * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  };
  const gutter = () => parseFloat(getComputedStyle(figures[0]).paddingLeft);

  function draw() {
    charts.forEach((c) => c.destroy());
    charts = [];
    const sync = uPlot.sync("steps"), left = gutter();
    const ink = color("--ink"), dim = color("--dim"), grid = color("--grid"), pale = color("--old"), blue = color("--pro"), red = color("--bad");
    const tint = { fast: color("--fast"), slow: color("--slow"), non_recovering: color("--non") };
    for (const figure of figures) {
      if (!figure.clientWidth) continue; // folded: drawn when it is opened
      const { joined, names, odd } = columns(figure.dataset.series.split(",").map(Number));
      if (!joined[0].length) continue;
      const log = figure.dataset.log === "1" && joined.slice(1).every((ys) => ys.every((y) => y == null || y > 0));
      const chart = new uPlot({
        width: figure.clientWidth, height: Math.max(+figure.dataset.height, 70) + 30,
        padding: [8, 4, 0, 0], cursor: { sync: { key: sync.key }, drag: { x: true, y: false } },
        scales: { x: { time: false, min: range[0], max: range[1] }, y: { distr: log ? 3 : 1 } },
        axes: [{ stroke: dim, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid }, size: 30, font: "12px system-ui, sans-serif" },
               { stroke: dim, grid: { stroke: grid, width: 1, ...(log ? { filter: round } : {}) }, ticks: { show: false }, size: left, font: "12px system-ui, sans-serif", values: (u, vs) => vs.map((v) => v == null ? "" : number(v)) }],
        series: [{ label: "step" }, ...names.map((n) => ({
          label: (n.beside ? n.metric : "value") + (names.length > 1 ? `, attempt ${n.attempt}${n.old ? ", done again" : ""}` : ""),
          stroke: n.beside ? blue : n.old ? pale : ink, width: n.old ? 3 : 1.2,
          dash: n.beside ? [4, 3] : undefined, points: { show: n.beside ? true : undefined, size: 5 }, value: (u, v) => number(v, 6) }))],
        hooks: {
          drawClear: [(u) => {
            const { ctx, bbox } = u;
            ctx.save();
            for (const band of data().timeline.bands || []) {
              const a = u.valToPos(band.from, "x", true), b = u.valToPos(band.to ?? u.scales.x.max, "x", true);
              if (b < bbox.left || a > bbox.left + bbox.width) continue;
              const x0 = Math.max(a, bbox.left), x1 = Math.min(Math.max(b, a + 3), bbox.left + bbox.width);
              ctx.globalAlpha = 0.3;
              ctx.fillStyle = tint[band.kind] || grid;
              ctx.fillRect(x0, bbox.top, x1 - x0, bbox.height);
            }
            ctx.globalAlpha = 1;
            ctx.fillStyle = red;
            for (const step of odd) {
              const x = u.valToPos(step, "x", true);
              if (x >= bbox.left && x <= bbox.left + bbox.width) ctx.fillRect(x - 1, bbox.top, 3, 6);
            }
            ctx.restore();
          }],
          setScale: [(u, key) => {
            if (key !== "x" || moving) return;
            go(u.scales.x.min, u.scales.x.max);
          }],
          setCursor: [(u) => {
            const step = u.cursor.idx == null ? null : u.data[0][u.cursor.idx];
            if (step != null && u === charts.find((c) => c.cursor.event) || charts[0] === u)
              readout.textContent = step == null ? idle : `Step ${step}${clock(step)}`;
          }],
        },
      }, joined, figure);
      chart.root.setAttribute("aria-hidden", "true"); // its words stand in the caption and in the tables
      charts.push(chart);
    }
  }
  let moving = false;
  function go(from, to) {
    if (!whole) {
      const steps = data().timeline.series.flatMap((s) => (s.lives || []).flatMap((l) => (l.points || []).map((p) => p[0]))).filter(Number.isFinite);
      whole = steps.reduce(([a, b], s) => [Math.min(a, s), Math.max(b, s)], [Infinity, -Infinity]);
    }
    const span = Math.max(to - from, 2);
    range = [Math.max(whole[0], Math.min(from, whole[1] - span)), Math.min(whole[1], Math.max(to, from + span))];
    if (!stack.classList.contains("live")) {
      stack.classList.add("live");
      draw();
    }
    moving = true;
    charts.forEach((c) => c.setScale("x", { min: range[0], max: range[1] }));
    moving = false;
    readout.textContent = `Steps ${Math.round(range[0])} to ${Math.round(range[1])}`;
  }
  function still() {
    charts.forEach((c) => c.destroy());
    charts = [];
    range = null;
    stack.classList.remove("live");
    readout.textContent = idle;
  }
  const current = () => { if (!range) { go(-Infinity, Infinity); range = [...whole]; } return range; };
  const by = (f) => () => { const [a, b] = current(), w = b - a; go(...f(a, b, w)); };
  $("#z-in").addEventListener("click", by((a, b, w) => [a + w / 4, b - w / 4]));
  $("#z-out").addEventListener("click", by((a, b, w) => [a - w / 2, b + w / 2]));
  $("#z-left").addEventListener("click", by((a, b, w) => [Math.max(a - w / 3, whole[0]), Math.max(b - w / 3, whole[0] + w)]));
  $("#z-right").addEventListener("click", by((a, b, w) => [Math.min(a + w / 3, whole[1] - w), Math.min(b + w / 3, whole[1])]));
  $("#z-all").addEventListener("click", still);
  $$("button.zoom").forEach((b) => b.addEventListener("click", () => {
    const from = +b.dataset.from, to = Math.max(+b.dataset.to, from);
    const pad = Math.max(2 * (to - from), 20);
    go(from - pad, to + pad);
    $("#timeline").scrollIntoView();
  }));
  addEventListener("resize", () => charts.forEach((c) => c.setSize({ width: c.root.parentElement.clientWidth, height: c.height })));
  $$("details", stack).forEach((d) => d.addEventListener("toggle", () => { if (d.open && charts.length) draw(); }));

  // Dragging across a drawn panel zooms to what was dragged over (with a mouse; a finger scrolls the page).
  figures.forEach((figure) => figure.addEventListener("pointerdown", (down) => {
    const drawn = $(".plot", figure);
    if (stack.classList.contains("live") || down.pointerType !== "mouse" || down.button || !drawn) return;
    down.preventDefault();
    const box = drawn.getBoundingClientRect(), offset = box.left - figure.getBoundingClientRect().left;
    const band = document.createElement("div");
    band.className = "sel";
    figure.append(band);
    const at = (e) => Math.min(Math.max(e.clientX - box.left, 0), box.width);
    const x0 = at(down);
    const move = (e) => {
      band.style.left = `${offset + Math.min(x0, at(e))}px`;
      band.style.width = `${Math.abs(at(e) - x0)}px`;
    };
    const up = (e) => {
      removeEventListener("pointermove", move);
      band.remove();
      if (Math.abs(at(e) - x0) < 6) return;
      const [a, b] = [...stack.dataset.steps.split(",").map(Number)];
      const step = (px) => a + (b - a) * px / box.width;
      go(step(Math.min(x0, at(e))), step(Math.max(x0, at(e))));
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", up, { once: true });
  }));
  theme();
})();
