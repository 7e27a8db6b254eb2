// The page works without this: it adds sorting, filters and the switch between light and dark. Pictures: pictures.js.
"use strict";
(() => {
  const COLOURS = ["--c1", "--c2", "--c3", "--c4", "--c5", "--c6", "--c7", "--c8"].map((name) => `var(${name})`);
  const SHAPES = ["circle", "square2", "triangle2", "diamond2", "star", "wye", "plus", "asterisk"];
  const made = (name, attributes = {}, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  // ---- Tables -------------------------------------------------------------------------------------------------
  const EMPTY = new Set(["", "–"]);
  function valueOf(cell, numeric) {
    if (numeric) return cell.dataset.v ? Number(cell.dataset.v) : null;
    const said = cell.textContent.trim();
    return EMPTY.has(said) ? null : said;
  }
  const byText = new Intl.Collator("en", { numeric: true, sensitivity: "base" }).compare;

  function sortable(table) {
    const body = table.tBodies[0];
    const given = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const numeric = given.length > 0 && given.every((row) => row.cells[column].dataset.v !== undefined);
      const button = made("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const now = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
        const order = now === undefined ? "ascending" : now;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (order) head.setAttribute("aria-sort", order);
        const sign = order === "descending" ? -1 : 1;
        const keyed = given.map((row) => [valueOf(row.cells[column], numeric), row]);
        if (order)
          keyed.sort(([a], [b]) => {
            if (a === null || b === null) return (a === null) - (b === null); // without a figure: last, both ways
            return sign * (numeric ? a - b : byText(a, b));
          });
        body.append(...keyed.map(([, row]) => row));
      });
    });
  }

  function filtered(box) {
    const rows = [...box.querySelectorAll("tbody tr")];
    const texts = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase());
    const controls = box.querySelector(".filter");
    const [input, count] = [controls.querySelector("input"), controls.querySelector("output")];
    const tell = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      rows.forEach((row, at) => {
        row.hidden = !words.every((word) => texts[at].includes(word));
        left += !row.hidden;
      });
      const all = `${rows.length.toLocaleString("en")} row${rows.length === 1 ? "" : "s"}`;
      count.textContent = words.length ? `${left.toLocaleString("en")} of ${all}` : all;
    };
    input.addEventListener("input", tell);
    tell();
    controls.hidden = rows.length < 2;
  }

  // Says that a wide table has columns which nobody sees yet, until it is scrolled to its end.
  function wide(box) {
    const hint = made("p", { class: "further", "aria-hidden": "true" }, "More columns to the right: scroll the table →");
    box.before(hint);
    const tell = () => {
      const left = box.scrollWidth - box.clientWidth;
      hint.hidden = left < 2;
      hint.classList.toggle("at-end", box.scrollLeft > left - 2);
    };
    box.addEventListener("scroll", tell, { passive: true });
    new ResizeObserver(tell).observe(box);
    tell();
  }

  document.querySelectorAll("main .box").forEach(wide);
  document.querySelectorAll("table.rows").forEach(sortable);
  document.querySelectorAll(".grid").forEach(filtered);

  // ---- Light and dark, print ----------------------------------------------------------------------------------
  const theme = document.getElementById("theme");
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => (theme.textContent = dark() ? "Light" : "Dark");
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    name();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();
  theme.hidden = false;

  const closed = [];
  addEventListener("beforeprint", () => {
    for (const one of document.querySelectorAll("main details:not([open], .figures)")) closed.push(one), (one.open = true);
  });
  addEventListener("afterprint", () => closed.splice(0).forEach((one) => (one.open = false)));
})();
