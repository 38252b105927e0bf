
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
  const filter = () => {
    const wanted = $("#find").value.trim().toLowerCase(), verdict = $("#verdict").value, cause = $("#cause").value;
    shown = order.filter((r) => (!verdict || cell(r, 2).startsWith(verdict))
      && (!cause || cell(r, 3) === cause) && (!wanted || text(r).includes(wanted)));
    at = 0;
    draw();
    remember();
  };
  // What is shown stands in the address, so that it can be sent: #find=...&verdict=...&cause=...&sort=6&down=1
  const FIELDS = ["find", "verdict", "cause"];
  let sorted = null, restoring = false;
  const remember = () => {
    if (restoring) return;
    const state = new URLSearchParams();
    for (const id of FIELDS) if ($(`#${id}`).value) state.set(id, $(`#${id}`).value);
    if (sorted) { state.set("sort", sorted.column); if (sorted.down) state.set("down", "1"); }
    history.replaceState(null, "", state.size ? `#${state}` : location.hash.includes("=") ? "#runs" : location.hash || "#");
  };
  const restore = () => {
    if (!location.hash.includes("=")) return;
    const state = new URLSearchParams(location.hash.slice(1));
    restoring = true;
    for (const id of FIELDS) $(`#${id}`).value = state.get(id) || "";
    sort(state.has("sort") ? { column: Number(state.get("sort")), down: state.has("down") } : null);
    filter();
    restoring = false;
    $("#runs").scrollIntoView();
  };
  addEventListener("hashchange", restore);
  let soon = 0;
  $("#find").addEventListener("input", () => { clearTimeout(soon); soon = setTimeout(filter, 120); });
  for (const id of ["#verdict", "#cause"]) $(id).addEventListener("change", filter);
  // A tally is a filter: it becomes a button that sets it, and takes it away again.
  for (const [name, select] of [["verdict", "#verdict"], ["cause", "#cause"]]) {
    for (const tally of document.querySelectorAll(`[data-${name}]`)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...tally.childNodes);
      tally.append(button);
      button.addEventListener("click", () => {
        $(select).value = $(select).value === tally.dataset[name] ? "" : tally.dataset[name];
        filter();
        $("#runs").scrollIntoView();
      });
    }
  }

  // What is shown, as a file; a cell that a spreadsheet would take for a formula begins with an apostrophe.
  $("#csv").addEventListener("click", () => {
    const quoted = (s) => `"${(/^[=+@\t-]/.test(s) && Number.isNaN(Number(s)) ? "'" : "") + s.replace(/"/g, "\"\"")}"`;
    const names = [...region.querySelectorAll("th")].map((th) => th.textContent);
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
    if (column === 5) return s.split("/").reduce((sum, n) => sum + Number(n), 0);
    const n = number(s);
    return [4, 6, 7, 8].includes(column) && !Number.isNaN(n) ? n : s.toLowerCase();
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
  const heads = [...region.querySelectorAll("th")];
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
