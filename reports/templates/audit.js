
// Adds what a page can do without: sorting, filtering, one page of rows at a time, a theme switch.
// Rows are lines of this page's own source, escaped when it was made: they are shown as they are, never put together here.
(() => {
  "use strict";
  const root = document.documentElement;
  const $ = (selector) => document.querySelector(selector);
  root.classList.add("on");

  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const theme = (name) => {
    if (name) root.dataset.theme = name;
    $("#theme").textContent = dark() ? "Light" : "Dark";
  };
  $("#theme").addEventListener("click", () => theme(dark() ? "light" : "dark"));
  theme();

  const PAGE = 100;
  const fold = $("details.page");
  if (!fold) return;
  const region = fold.querySelector(".scroll"), body = region.querySelector("tbody");
  const all = [...body.rows].map((r) => r.outerHTML);
  for (const rest of document.querySelectorAll("noscript")) {
    for (const line of rest.textContent.split("\n")) if (line.startsWith("<tr ")) all.push(line);
    rest.remove();
  }
  region.setAttribute("aria-label", "Runs");
  $("#live").append(region);
  fold.remove();

  // The text of a cell, from the source of its row.
  const entities = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&#34;": "\"", "&#39;": "'" };
  const plain = (html) => (html || "").replace(/<[^>]*>/g, "").replace(/&(amp|lt|gt|#34|#39);/g, (e) => entities[e]).trim();
  const cell = (row, column) => plain(row.split("<td>")[column + 1]);

  let order = all, shown = all, at = 0;
  const draw = () => {
    body.innerHTML = shown.slice(at, at + PAGE).join("");
    const last = Math.min(at + PAGE, shown.length);
    $("#place").textContent = shown.length ? `${at + 1} to ${last} of ${shown.length}` : "none";
    $("#count").textContent = `${shown.length} of ${all.length} runs`;
    $("#before").disabled = at === 0;
    $("#next").disabled = last === shown.length;
  };

  const texts = new Map();
  const text = (row) => {
    if (!texts.has(row)) texts.set(row, row.split("<td>").map(plain).join(" ").toLowerCase());
    return texts.get(row);
  };
  // What is picked: column -> values, any of which a run has to have there, alone, in a list or before a colon; without values, anything at all.
  const heads = [...region.querySelectorAll("th")], names = heads.map((th) => th.textContent);
  const picked = new Map();
  const has = (s, values) => (values.length ? values.includes(s) || values.includes(s.split(": ")[0]) || s.split(", ").some((part) => values.includes(part)) : s !== "");
  const filter = () => {
    const wanted = $("#find").value.trim().toLowerCase(), by = [...picked].map(([name, values]) => [names.indexOf(name), values]);
    shown = order.filter((r) => by.every(([column, values]) => has(cell(r, column), values)) && (!wanted || text(r).includes(wanted)));
    at = 0;
    draw();
    show();
    remember();
  };
  const same = (a, b) => a !== undefined && a.join("\n") === b.join("\n");
  const pick = (name, values) => {
    if (values === null || !names.includes(name)) picked.delete(name); else picked.set(name, values);
  };
  const SELECTS = [...document.querySelectorAll(".filters select")].map((s) => s.id);
  // The selects, the numbers above and a button for whatever else is picked say the same.
  const show = () => {
    for (const id of SELECTS) $(`#${id}`).value = (picked.get(id) || [""])[0] || "";
    for (const button of document.querySelectorAll(".filter")) button.setAttribute("aria-pressed", same(picked.get(button.dataset.column), button.values));
    $("#picked").replaceChildren(...[...picked].filter(([name, values]) => !(SELECTS.includes(name) && values.length === 1 && $(`#${name}`).value === values[0])).map(([name, values]) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${name}${values.length ? `: ${values.join(" or ")}` : ""} \u00d7`;
      button.setAttribute("aria-label", `No longer only ${name} ${values.join(" or ")}`);
      button.addEventListener("click", () => { pick(name, null); filter(); });
      return button;
    }));
  };
  // What is shown stands in the address, so that it can be sent: #find=...&verdict=...&lost to=...&sort=steps&down=1
  let sorted = null, restoring = false;
  const remember = () => {
    if (restoring) return;
    const state = new URLSearchParams();
    if ($("#find").value) state.set("find", $("#find").value);
    for (const [name, values] of picked) for (const value of values.length ? values : [""]) state.append(name, value);
    if (sorted) { state.set("sort", names[sorted.column]); if (sorted.down) state.set("down", "1"); }
    history.replaceState(null, "", state.size ? `#${state}` : location.hash.includes("=") ? "#runs" : location.hash || "#");
  };
  const restore = () => {
    if (!location.hash.includes("=")) return;
    const state = new URLSearchParams(location.hash.slice(1));
    restoring = true;
    $("#find").value = state.get("find") || "";
    picked.clear();
    for (const name of names) if (state.has(name)) pick(name, state.getAll(name).filter((value) => value));
    sort(state.has("sort") ? { column: names.indexOf(state.get("sort")), down: state.has("down") } : null);
    filter();
    restoring = false;
    $("#runs").scrollIntoView();
  };
  addEventListener("hashchange", restore);
  let soon = 0;
  $("#find").addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(filter, 120); });
  for (const id of SELECTS) {
    $(`#${id}`).addEventListener("change", (event) => { pick(id, event.target.value ? [event.target.value] : null); filter(); });
  }
  // Each number above is a filter: it becomes a button that sets it, and takes it away again.
  for (const number of document.querySelectorAll("[data-column]")) {
    if (!names.includes(number.dataset.column)) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "filter";
    button.values = number.dataset.values.split("\n").filter((value) => value);
    button.dataset.column = number.dataset.column;
    button.append(...number.childNodes);
    number.replaceWith(button);
    button.addEventListener("click", () => {
      const set = same(picked.get(button.dataset.column), button.values);
      picked.clear();
      if (!set) pick(button.dataset.column, button.values);
      filter();
      $("#runs").scrollIntoView();
    });
  }

  // What is shown, as a file; a cell that a spreadsheet would take for a formula begins with an apostrophe.
  $("#csv").addEventListener("click", () => {
    const quoted = (s) => `"${(/^[=+@\t-]/.test(s) && Number.isNaN(Number(s)) ? "'" : "") + s.replace(/"/g, "\"\"")}"`;
    const kept = names.map((_, i) => i).filter((i) => i !== 1);
    const lines = [names, ...shown.map((r) => names.map((_, i) => cell(r, i)))].map((row) => kept.map((i) => quoted(row[i])).join(","));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n")], { type: "text/csv" }));
    link.download = "runs.csv";
    link.click();
    URL.revokeObjectURL(link.href);
  });
  $("#before").addEventListener("click", () => { at = Math.max(0, at - PAGE); draw(); });
  $("#next").addEventListener("click", () => { at += PAGE; draw(); });

  // Sorting: numbers as numbers, empty cells last; the third click is the page's own order again.
  const number = (s) => Number(s.replace("\u2212", "-").replace(/[^0-9.e+-]/g, "") || NaN);
  const key = (column, s) => {
    if (s === "") return null;
    if (names[column] === "spikes") return s.split("/").reduce((sum, n) => sum + Number(n), 0);
    const n = number(s);
    return heads[column].classList.contains("n") && !Number.isNaN(n) ? n : s.toLowerCase();
  };
  const sort = (by) => {
    heads.forEach((h) => h.removeAttribute("aria-sort"));
    sorted = by && heads[by.column] ? by : null;
    if (!sorted) { order = all; return; }
    const { column, down } = sorted, sign = down ? -1 : 1;
    heads[column].setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = all.map((r, i) => [key(column, cell(r, column)), i, r]);
    keyed.sort(([a, i], [b, j]) => (a === null) - (b === null) || (a === null ? i - j : sign * ((a > b) - (a < b)) || i - j));
    order = keyed.map((k) => k[2]);
  };
  heads.forEach((th, column) => {
    if (column === 1) return;
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = th.textContent;
    th.replaceChildren(button);
    button.addEventListener("click", () => {
      const way = th.getAttribute("aria-sort");
      sort(way === "descending" ? null : { column, down: way === "ascending" });
      filter();
    });
  });
  draw();
  restore();
})();
