// The page works without this: it adds pictures, sorting, filters and the switch between light and dark.
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

  document.querySelectorAll("table.rows").forEach(sortable);
  document.querySelectorAll(".grid").forEach(filtered);

  // ---- Pictures -----------------------------------------------------------------------------------------------
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const shown = (value) => number.format(value);

  function legend(picture) {
    if (picture.series.length < 2) return [];
    const items = picture.series.map((name, at) => {
      const mark = Plot.plot({
        width: 22, height: 14, margin: 0, axis: null, x: { domain: [0, 1] }, y: { domain: [0, 1] },
        marks: [
          ...(picture.kind === "lines" ? [Plot.ruleY([0.5], { stroke: COLOURS[at], strokeWidth: 2 })] : []),
          Plot.dot([[0.5, 0.5]], { fill: COLOURS[at], stroke: COLOURS[at], symbol: SHAPES[at], r: 4 }),
        ],
      });
      mark.setAttribute("aria-hidden", "true");
      return made("li", {}, mark, name || "others");
    });
    return [made("ul", { class: "legend" }, ...items)];
  }

  const extent = (values) => [Math.min(...values), Math.max(...values)];
  // A wide interval must not press the figures flat: it is cut where it leaves the picture.
  const reach = (points, low, high) => points.flatMap((one) => [one.y, ...(one.lo === undefined ? [] : [Math.max(one.lo, low / 3), Math.min(one.hi, high * 1.6)])]);

  function scaleOf(points, log) {
    const [low, high] = extent(points.map((one) => one.y));
    const [least, most] = extent(reach(points, low, high));
    return log ? [least / 1.25, most * 1.25] : [Math.min(0, least), most > 0 ? most * 1.08 : 1];
  }

  // Round figures, as many as make a scale readable: powers of ten, else 1, 2 and 5 of each, else what lies evenly.
  function logTicks([low, high]) {
    for (const steps of [[1], [1, 2, 5]]) {
      const found = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power += 1)
        found.push(...steps.map((step) => step * 10 ** power).filter((tick) => tick >= low && tick <= high));
      if (found.length > 2) return found;
    }
    return d3.ticks(low, high, 4);
  }

  const styled = (picture) => {
    const at = new Map(picture.series.map((name, index) => [name, index]));
    return {
      colour: (one) => COLOURS[at.get(one.s)],
      shape: (one) => SHAPES[at.get(one.s)],
    };
  };
  // A ring around the point that is told. Its words stand beside it as HTML, which stays inside of the page.
  const RING = { r: 8, stroke: "var(--ink)", strokeWidth: 1.5, maxRadius: 60 };
  const FRAME = { style: { fontSize: "12px", background: "transparent", overflow: "visible" } };

  function lines(picture, width) {
    const { colour, shape } = styled(picture);
    const known = picture.points.filter((one) => one.y !== null);
    const domain = scaleOf(known.concat(picture.ideal.map(([, y]) => ({ y }))), picture.logY);
    const places = [...new Set(picture.points.map((one) => one.x))].sort((a, b) => a - b);
    // Of an out-of-memory row there is no figure: its cross stands on the ground, where its curve ends.
    const ooms = picture.points.filter((one) => one.oom).map((one) => ({ ...one, y: domain[0] }));
    const [first, last] = extent(places);
    const space = picture.logX ? 1.12 : (last - first) * 0.05 || 1;
    const few = places.length > Math.max(2, width / 45) ? undefined : places;
    return Plot.plot({
      ...FRAME, width, height: Math.min(320, Math.max(240, width * 0.58)), marginLeft: 56, marginRight: 16, marginBottom: 42,
      x: {
        type: picture.logX ? "log" : "linear", base: 2, label: picture.x, labelAnchor: "center", labelArrow: "none", ticks: few, tickFormat: shown,
        domain: picture.logX ? [first / space, last * space] : [first - space, last + space],
      },
      y: { type: picture.logY ? "log" : "linear", label: picture.y, labelArrow: "none", grid: true, domain, ticks: picture.logY ? logTicks(domain) : 5, tickFormat: shown },
      marks: [
        picture.ideal.length ? Plot.line(picture.ideal, { strokeDasharray: "5 4", stroke: "var(--soft)" }) : null,
        Plot.line(picture.points, { x: "x", y: (one) => one.y ?? NaN, z: "s", stroke: colour, strokeWidth: 1.8 }),
        Plot.ruleX(known.filter((one) => one.lo !== undefined), { x: "x", y1: (one) => Math.max(one.lo, domain[0]), y2: (one) => Math.min(one.hi, domain[1]), stroke: colour, strokeWidth: 1.5 }),
        Plot.dot(known, { x: "x", y: "y", fill: colour, stroke: colour, symbol: shape, r: 3.5 }),
        Plot.dot(ooms, { x: "x", y: "y", stroke: colour, symbol: "times", r: 5, strokeWidth: 2 }),
        Plot.dot([...known, ...ooms], Plot.pointer({ x: "x", y: "y", ...RING })),
      ],
    });
  }

  // Names stand above their points, or where else they cover no other point or name; else nowhere, but in the tip.
  function named(points, across, down) {
    if (points.length > 60) return [];
    const taken = points.map((one) => [across(one.x), down(one.y), 5, 5]);
    const free = (x, y, wide, high) => taken.every(([a, b, w, h]) => Math.abs(a - x) >= w + wide || Math.abs(b - y) >= h + high);
    return points.flatMap((one) => {
      const half = (one.name ?? "").length * 3.8;
      for (const [dx, dy] of [[0, -12], [half + 9, 0], [-half - 9, 0], [0, 13]]) {
        const [x, y] = [across(one.x) + dx, down(one.y) + dy];
        if (!half || !free(x, y, half, 6)) continue;
        taken.push([x, y, half, 6]);
        return [{ ...one, dx, dy }];
      }
      return [];
    });
  }

  function dots(picture, width) {
    const { colour, shape } = styled(picture);
    const [, mostX] = extent(picture.points.map((one) => one.x));
    const height = Math.min(320, Math.max(240, width * 0.58));
    const [wide, high] = [mostX * 1.06, scaleOf(picture.points, false)[1]];
    const names = named(picture.points, (x) => (x / wide) * (width - 76), (y) => (1 - y / high) * (height - 62));
    return Plot.plot({
      ...FRAME, width, height, marginLeft: 56, marginRight: 20, marginBottom: 42,
      x: { label: picture.x, labelAnchor: "center", labelArrow: "none", domain: [0, wide], ticks: 5, tickFormat: shown, grid: true },
      y: { label: picture.y, labelArrow: "none", domain: scaleOf(picture.points, false), ticks: 5, tickFormat: shown, grid: true },
      marks: [
        Plot.dot(picture.points, { x: "x", y: "y", fill: colour, stroke: colour, symbol: shape, r: 4 }),
        ...names.map((one) => Plot.text([one], { x: "x", y: "y", text: "name", dx: one.dx, dy: one.dy, fill: "var(--ink)" })),
        Plot.dot(picture.points, Plot.pointer({ x: "x", y: "y", ...RING })),
      ],
    });
  }

  function bars(picture, width) {
    const points = picture.points;
    const [, most] = extent(reach(points, 0, Math.max(...points.map((one) => one.y))).concat(points.map((one) => one.p ?? 0), picture.reference ?? 0));
    const [start, end] = [0, most * 1.14 || 1];
    return Plot.plot({
      ...FRAME, width, height: 44 + points.length * 40, marginLeft: 4, marginRight: 10, marginTop: 4, marginBottom: 40,
      x: { label: picture.x, labelAnchor: "center", labelArrow: "none", domain: [start, end], ticks: 5, tickFormat: shown, grid: true },
      y: { axis: null, domain: points.map((one) => one.x), padding: 0 },
      marks: [
        Plot.barX(points, { y: "x", x: "y", fill: "var(--c1)", insetTop: 20, insetBottom: 5 }),
        Plot.ruleX([0], { stroke: "var(--soft)" }),
        picture.reference === null ? null : Plot.ruleX([picture.reference], { stroke: "var(--ink)", strokeDasharray: "4 3" }),
        Plot.ruleY(points.filter((one) => one.lo !== undefined), { y: "x", x1: "lo", x2: (one) => Math.min(one.hi, end), stroke: "var(--ink)", strokeWidth: 1.5, dy: 7 }),
        Plot.tickX(points.filter((one) => one.p !== undefined), { y: "x", x: "p", stroke: "var(--c2)", strokeWidth: 3, insetTop: 17, insetBottom: 2 }),
        Plot.text(points, { y: "x", x: () => 0, text: "x", textAnchor: "start", dx: 3, dy: -11, lineWidth: (width - 16) / 12, textOverflow: "ellipsis-end", fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 5 }),
        Plot.text(points, { y: "x", x: (one) => Math.min(end, Math.max(one.y, one.p ?? 0, one.hi ?? 0)), text: "figure", textAnchor: "start", dx: 5, dy: 7, fill: "var(--ink)", stroke: "var(--paper)", strokeWidth: 4 }),
        Plot.barX(points, Plot.pointerY({ y: "x", x: "y", fill: "none", stroke: "var(--ink)", strokeWidth: 1.5, insetTop: 20, insetBottom: 5 })),
      ],
    });
  }

  const DRAWN = { lines, dots, bars };

  function figure(box) {
    const picture = JSON.parse(box.querySelector("script").textContent);
    const [place, told] = [box.querySelector(".plot"), box.querySelector(".told")];
    place.setAttribute("aria-roledescription", "picture; arrow keys go from point to point");
    const tip = made("div", { class: "tip", "aria-hidden": "true" }); // `told` says the same to a screen reader
    let svg, width, at;
    const reached = picture.points
      .map((one, index) => ({ one, index }))
      .filter(({ one }) => one.y !== null || one.oom);
    const draw = (wanted) => {
      if (wanted < 1 || wanted === width) return;
      tip.hidden = true;
      width = wanted;
      svg = DRAWN[picture.kind](picture, width);
      svg.setAttribute("aria-hidden", "true"); // what it shows is said in the caption, and point by point below it
      svg.addEventListener("input", tell);
      place.replaceChildren(...legend(picture), svg, tip);
    };
    const placeOf = (one) => {
      const [x, y] = [svg.scale("x"), svg.scale("y")];
      const zoom = svg.getBoundingClientRect().width / width;
      const [across, down] =
        picture.kind === "bars"
          ? [x.apply(one.y), y.apply(one.x) + y.bandwidth / 2]
          : [x.apply(one.x), y.apply(one.y ?? y.domain[0])];
      return [across * zoom, down * zoom];
    };
    const tell = () => {
      const one = svg.value;
      tip.hidden = !one;
      told.textContent = one ? one.tip.split("\n").join(", ") : "";
      if (!one) return;
      tip.textContent = one.tip;
      const [across, down] = placeOf(one);
      const left = Math.min(across - tip.offsetWidth / 2, place.clientWidth - tip.offsetWidth);
      tip.style.left = `${Math.max(0, left)}px`;
      const top = svg.getBoundingClientRect().top - place.getBoundingClientRect().top + down;
      tip.style.top = top - tip.offsetHeight - 14 > -40 ? `${top - tip.offsetHeight - 14}px` : `${top + 14}px`;
    };
    const point = (type, one) => {
      const frame = svg.getBoundingClientRect();
      const [across, down] = placeOf(one);
      svg.dispatchEvent(new PointerEvent(type, { clientX: frame.left + across, clientY: frame.top + down, pointerType: "mouse", bubbles: true }));
    };
    place.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") return leave();
      if (!step || !reached.length) return;
      event.preventDefault();
      at = at === undefined ? (step > 0 ? 0 : reached.length - 1) : (at + step + reached.length) % reached.length;
      point("pointerenter", reached[at].one);
      point("pointermove", reached[at].one);
    });
    const leave = () => {
      at = undefined;
      svg.dispatchEvent(new PointerEvent("pointerleave", { pointerType: "mouse" }));
    };
    place.addEventListener("blur", leave);
    const wide = () => Math.floor(Math.min(640, place.clientWidth));
    draw(wide());
    new ResizeObserver(() => draw(wide())).observe(place);
    addEventListener("beforeprint", () => draw(440)); // two beside each other on paper
    addEventListener("afterprint", () => draw(wide()));
  }

  document.querySelectorAll("figure:has(> script)").forEach(figure);

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
    for (const one of document.querySelectorAll("main details:not([open])")) closed.push(one), (one.open = true);
  });
  addEventListener("afterprint", () => closed.splice(0).forEach((one) => (one.open = false)));
})();
