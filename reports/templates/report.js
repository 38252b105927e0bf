
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

  // Links open every fold around their target, and the target itself; #steps=282-325 zooms the timeline.
  let zoom = () => {};
  const reveal = (hash) => {
    const steps = /^#steps=(-?\d+)-(-?\d+)$/.exec(hash);
    if (steps) { zoom(+steps[1], +steps[2]); $("#timeline").scrollIntoView(); return; }
    let id = "";
    try { id = decodeURIComponent(hash.slice(1)); } catch { return; }
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let e = target; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    target.scrollIntoView();
  };
  const within = location.protocol === "about:"; // shown in a notebook's frame, where an address would leave the page
  addEventListener("hashchange", () => reveal(location.hash));
  document.addEventListener("click", (e) => {
    const link = e.target.closest && e.target.closest('a[href^="#"]');
    if (!link || link.dataset.from) return;
    const hash = link.getAttribute("href");
    if (within) e.preventDefault();
    if (within || hash === location.hash) reveal(hash);
  });

  // Paper has no canvas, and no folds but those for reference, of which their heading is enough.
  let opened = [];
  addEventListener("beforeprint", () => {
    still();
    opened = $$("details:not([open], .ref)");
    opened.forEach((d) => { d.open = true; });
  });
  addEventListener("afterprint", () => { opened.forEach((d) => { d.open = false; }); opened = []; });

  // The explorer: the drawn panels become uPlot charts on one axis, in place, once the reader zooms.
  let parsed;
  const data = () => parsed || (parsed = JSON.parse(text("#case")));
  const stack = $("#stack");
  if (!stack) { theme(); reveal(location.hash); return; }
  const figures = $$(".panel", stack), readout = $("#readout");
  if (matchMedia("(pointer: fine)").matches) readout.textContent = "Drag across a chart to zoom.";
  const idle = readout.textContent;
  let whole = null, range = null;

  const number = (v, digits = 4) => v == null ? "–" : v === 0 || (Math.abs(v) >= 1e-3 && Math.abs(v) < 1e6)
    ? String(+v.toPrecision(digits)) : (+v.toPrecision(digits)).toExponential();
  const starts = () => (data().run.attempts || []).filter((a) => a.steps && a.steps[0] != null).map((a) => [a.index, a.steps[0]]);
  // The timeline is thinned; the windows of the findings are finer, and lie in the case already.
  let windows;
  const finer = (metric, attempt) => {
    if (!windows) {
      windows = new Map();
      for (const finding of data().findings || []) for (const e of finding.evidence || []) {
        if (e.kind !== "series" || !e.data) continue;
        for (const life of e.data.lives || []) {
          const key = `${life.attempt} ${e.data.metric}`;
          windows.set(key, (windows.get(key) || []).concat(life.points || []));
        }
      }
    }
    return windows.get(`${attempt} ${metric}`) || [];
  };
  const columns = (indices) => {
    const tables = [], names = [], odd = []; // odd: [first, last] step of NaN and infinity, drawn on the upper edge
    for (const i of indices) {
      const series = data().timeline.series[i];
      for (const life of series.lives || []) {
        const all = new Map([...(life.points || []), ...finer(series.metric, life.attempt)].filter((p) => typeof p[0] === "number"));
        const points = [...all].sort((a, b) => a[0] - b[0]);
        if (!points.length) continue;
        // What a later attempt did again is drawn as on paper: grey, and beneath what stands.
        const later = series.lives.some((l) => l.attempt > life.attempt && (l.points || []).length);
        const cut = later ? Math.min(...starts().filter(([a]) => a > life.attempt).map(([, s]) => s)) : Infinity;
        points.forEach(([step, v], k) => {
          if (typeof v !== "string") return;
          if (k && typeof points[k - 1][1] === "string") odd[odd.length - 1][1] = step;
          else odd.push([step, step]);
        });
        for (const old of [true, false]) {
          const part = points.filter((p) => (p[0] >= cut) === old);
          if (!part.length || (old && i !== indices[0])) continue;
          tables.push([part.map((p) => p[0]), part.map((p) => tame(p[1]))]);
          names.push({ attempt: life.attempt, several: series.lives.length > 1, beside: i !== indices[0], old });
        }
      }
    }
    return { joined: tables.length ? uPlot.join(tables) : [[], []], names, odd };
  };
  const probe = stack.appendChild(document.createElement("i"));
  const color = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  // What no axis can be drawn of: beyond 1e300 a span overflows, below 1e-300 there are no powers of ten.
  const tame = (v) => typeof v !== "number" || Math.abs(v) > 1e300 ? null : v && Math.abs(v) < 1e-300 ? Math.sign(v) * 1e-300 : v;
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

  // Ticks as on paper: round numbers, and 1, 2, 5 on a scale over decades.
  const logTicks = (lo, hi) => {
    const decades = Math.log10(hi / lo), found = [];
    if (!(decades > 0)) return [lo];
    const step = 10 ** Math.floor(Math.log10((hi - lo) / 3)), unit = step * ((hi - lo) / step > 12 ? 5 : (hi - lo) / step > 6 ? 2 : 1);
    if (decades < 0.7) for (let v = Math.ceil(lo / unit) * unit; v <= hi; v += unit) found.push(+v.toPrecision(12));
    const every = Math.max(1, Math.round(decades / 5));
    if (!found.length) for (let e = Math.floor(Math.log10(lo)); e <= Math.log10(hi); e += every)
      found.push(...(decades < 2 ? [1, 2, 5] : [1]).map((f) => +(f * 10 ** e).toPrecision(6)));
    return found.filter((v) => v >= lo && v <= hi);
  };
  const EXACT = 2 ** 52; // beyond it one step more is the same number: a loop from tick to tick would not end
  const STEPS = [1, 2, 5].flatMap((f) => [...Array(15).keys()].map((e) => f * 10 ** e)).sort((a, b) => a - b);
  const bands = () => (data().timeline.bands || []).filter((b) => typeof b.from === "number");
  const bandNames = JSON.parse(stack.dataset.bands);
  const again = stack.dataset.again ? stack.dataset.again.split(",").map(Number) : null;

  function draw() {
    charts.forEach((c) => c.destroy());
    charts = [];
    const sync = uPlot.sync("steps"), left = gutter(), font = "12px system-ui, sans-serif";
    const ink = color("--ink"), dim = color("--dim"), grid = color("--grid"), pale = color("--old"), blue = color("--pro"), red = color("--bad"), ground = color("--bg");
    const tint = { fast: color("--fast"), slow: color("--slow"), non_recovering: color("--non") };
    const widths = new Map(figures.map((f) => [f, f.clientWidth])); // all before the first change: reading lays the page out
    const open = figures.filter((f) => widths.get(f)); // folded ones are drawn when they are opened
    for (const figure of open) {
      const { joined, names, odd } = columns(figure.dataset.series.split(",").map(Number));
      if (!joined[0].length) continue;
      const log = figure.dataset.log === "1" && joined.slice(1).every((ys) => ys.every((y) => y == null || y > 0));
      const foot = figure === open[open.length - 1];
      const shown = $(".val", figure) || figure.querySelector("figcaption").appendChild(Object.assign(document.createElement("span"), { className: "val" }));
      const air = (u, lo, hi) => {
        if (lo == null) return log ? [1, 10] : [0, 1];
        const f = log ? Math.max(Math.exp(0.06 * (Math.log(hi) - Math.log(lo))), 1.02) : Math.max((hi - lo) * 0.06, hi === lo ? Math.abs(hi) * 0.06 : 1e-9 * Math.max(Math.abs(lo), Math.abs(hi))) || 0.5; // ticks must differ
        return log ? [lo / f, hi * f] : [lo >= 0 && lo < f ? 0 : lo - f, hi + f];
      };
      // What lies behind the curves (bands, the replayed stretch) and what marks a step.
      const behind = (u) => {
        const { ctx, bbox } = u, at = (step) => u.valToPos(step, "x", true), r = devicePixelRatio;
        ctx.save();
        ctx.beginPath(); ctx.rect(bbox.left, bbox.top - 14 * r, bbox.width, bbox.height + 19 * r); ctx.clip();
        for (const band of bands()) {
          const a = at(band.from), width = Math.max((band.to == null ? bbox.left + bbox.width : at(band.to)) - a, 2 * r);
          ctx.fillStyle = tint[band.kind] || pale; // a strip at the foot, as on paper: it covers no point
          ctx.fillRect(a, bbox.top + bbox.height, width, 4 * r);
        }
        if (again) { ctx.fillStyle = blue; ctx.fillRect(at(again[0]), bbox.top + bbox.height - 3 * r, at(again[1]) - at(again[0]), 3 * r); }
        for (const mark of data().timeline.marks || []) {
          const x = Math.round(at(mark.step)), saved = mark.kind === "checkpoint";
          ctx.fillStyle = ctx.strokeStyle = saved ? blue : dim;
          if (saved) ctx.fillRect(x - r, bbox.top + bbox.height - 8 * r, 2 * r, 8 * r);
          else if (mark.kind === "restart" || mark.kind === "event") {
            ctx.setLineDash(mark.kind === "restart" ? [4 * r, 3 * r] : [r, 3 * r]);
            ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
          }
        }
        ctx.fillStyle = red;
        for (const [a, b] of odd) ctx.fillRect(at(a) - r, bbox.top, at(b) - at(a) + 2 * r, 5 * r);
        ctx.restore();
      };
      const named = (u) => { // over the first chart, as far as there is room
        if (figure !== open[0]) return;
        const { ctx, bbox } = u, r = devicePixelRatio;
        ctx.save();
        ctx.font = `600 ${12 * r}px system-ui, sans-serif`; ctx.textBaseline = "bottom"; ctx.fillStyle = ink;
        const taken = [], labels = bands().map((b, k) => [b.from, `${b.from}: ${bandNames[k]}`]);
        for (const mark of data().timeline.marks || []) if (mark.kind === "restart") labels.push([mark.step, `${mark.step}: restart`]);
        for (const [label, step] of new Map(labels.map(([s, l]) => [l, s]))) { // of restarts at one step the label stands once
          const x = u.valToPos(step, "x", true), width = ctx.measureText(label).width;
          if (x < bbox.left || x > bbox.left + bbox.width) continue;
          const left = [x, x - width].find((a) => a >= bbox.left && a + width <= bbox.left + bbox.width && taken.every(([c, d]) => a > d || a + width < c));
          if (left == null) continue;
          ctx.fillText(label, left, bbox.top - 2 * r);
          taken.push([left - 8 * r, left + width + 8 * r]);
        }
        ctx.restore();
      };
      const chart = new uPlot({
        width: widths.get(figure), height: Math.max(+figure.dataset.height, 70) + (foot ? 30 : 8),
        padding: [figure === open[0] ? 18 : 6, 0, 0, 0], legend: { show: false },
        cursor: { sync: { key: sync.key }, drag: { x: true, y: false }, points: { size: 6 } },
        scales: { x: { time: false, min: range[0], max: range[1] }, y: { distr: log ? 3 : 1, range: air } },
        axes: [{ stroke: dim, grid: { stroke: grid, width: 1 }, ticks: { show: false }, size: foot ? 26 : 4, font, incrs: STEPS, space: 70,
                 values: (u, vs) => vs.map((v) => foot && v < u.scales.x.max - 0.02 * (u.scales.x.max - u.scales.x.min) ? String(v) : "") },
               { stroke: dim, grid: { stroke: grid, width: 1 }, ticks: { show: false }, size: left, font, ...(log ? { splits: (u, i, lo, hi) => logTicks(lo, hi), filter: (u, vs) => vs } : { space: 28 }),
                 values: (u, vs) => vs.map((v) => v == null ? "" : number(v)) }],
        series: [{}, ...names.map((n) => ({
          stroke: n.beside ? blue : n.old ? pale : ink, width: n.old ? 3 : 1.2, dash: n.beside ? [4, 3] : undefined,
          points: { show: n.beside ? true : undefined, size: 5, fill: ground } }))],
        hooks: {
          drawClear: [behind], draw: [named],
          // Charts commit later, all of them: only what the reader dragged over is news.
          setScale: [(u, key) => { const { min, max } = u.scales.x; if (key === "x" && (min !== range[0] || max !== range[1])) go(min, max); }],
          setCursor: [(u) => {
            const i = u.cursor.idx, step = i == null ? null : u.data[0][i];
            const told = step == null ? [] : names.map((n, k) => [n, u.data[k + 1][i]]).filter(([, v]) => v != null);
            shown.textContent = told.map(([n, v]) => `${n.beside ? "evaluation " : ""}${number(v, 5)}${n.several ? ` (attempt ${n.attempt})` : ""}`).join(", ");
            if (u === charts[0]) readout.textContent = step == null ? spanned() : `Step ${step}${clock(step)}`;
          }],
        },
      }, joined, figure);
      chart.root.setAttribute("aria-hidden", "true"); // its words stand in the caption and in the tables
      charts.push(chart);
    }
  }
  const spanned = () => `Steps ${Math.round(range[0])} to ${Math.round(range[1])}`;
  function go(from, to) {
    if (!whole) {
      const steps = data().timeline.series.flatMap((s) => (s.lives || []).flatMap((l) => (l.points || []).map((p) => p[0]))).filter(Number.isFinite);
      whole = steps.reduce(([a, b], s) => [Math.min(a, s), Math.max(b, s)], [Infinity, -Infinity]);
    }
    if (Math.max(...whole.map(Math.abs)) > EXACT) { readout.textContent = "Steps beyond 2^52 cannot be zoomed."; return; }
    const span = Math.max(to - from, 2);
    range = [Math.max(whole[0], Math.min(from, whole[1] - span)), Math.min(whole[1], Math.max(to, from + span))];
    if (stack.classList.contains("live")) charts.forEach((c) => c.setScale("x", { min: range[0], max: range[1] }));
    else {
      stack.classList.add("live");
      draw();
    }
    const [a, b] = range.map(Math.round), share = 100 / (range[1] - range[0]);
    const lanes = $(".lanes", stack), [first, last] = stack.dataset.steps.split(",").map(Number);
    if (lanes) Object.assign(lanes.style, { width: `${(last - first) * share}%`, marginLeft: `${(first - range[0]) * share}%` });
    readout.textContent = spanned();
    try { history.replaceState(null, "", `#steps=${a}-${b}`); } catch { /* in a frame without an address */ }
  }
  function still() {
    charts.forEach((c) => c.destroy());
    charts = [];
    range = null;
    stack.classList.remove("live");
    const lanes = $(".lanes", stack);
    if (lanes) lanes.style.width = lanes.style.marginLeft = "";
    $$(".val", stack).forEach((v) => v.remove());
    readout.textContent = idle;
  }
  const current = () => { if (!range) { go(-Infinity, Infinity); range = range && [...whole]; } return range; };
  const by = (f) => () => { if (!current()) return; const [a, b] = range, w = b - a; go(...f(a, b, w)); };
  $("#z-in").addEventListener("click", by((a, b, w) => [a + w / 4, b - w / 4]));
  $("#z-out").addEventListener("click", by((a, b, w) => [a - w / 2, b + w / 2]));
  $("#z-left").addEventListener("click", by((a, b, w) => [Math.max(a - w / 3, whole[0]), Math.max(b - w / 3, whole[0] + w)]));
  $("#z-right").addEventListener("click", by((a, b, w) => [Math.min(a + w / 3, whole[1] - w), Math.min(b + w / 3, whole[1])]));
  $("#z-all").addEventListener("click", () => { still(); try { history.replaceState(null, "", "#timeline"); } catch { /* as above */ } });
  $$("[data-from]").forEach((b) => b.addEventListener("click", (e) => {
    e.preventDefault();
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
  zoom = go;
  theme();
  reveal(location.hash);
})();
