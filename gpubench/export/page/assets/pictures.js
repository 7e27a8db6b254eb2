// Draws what gpubench.plot describes: panels of lines, bars or cells. Without this the page says what it needs.
"use strict";
(() => {
  const LOOKS = JSON.parse(document.querySelector("#looks script").textContent);
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const shown = (value) => number.format(value);
  const made = (name, attributes = {}, ...children) => filled(document.createElement(name), attributes, children);
  const drawn = (name, attributes = {}, ...children) => filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
  function filled(element, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  // ---- Looks --------------------------------------------------------------------------------------------------
  const INK = "var(--ink)";
  const PAPER = "var(--paper)";
  const SOFT = "var(--soft)";
  const of = (looks, look) => looks[look % looks.length];
  const colour = (one) => `var(--s${one.look % LOOKS.colours})`;
  const shape = (one) => symbol(of(LOOKS.shapes, one.look));
  const symbol = (corners) => ({
    draw(context, size) {
      const radius = Math.sqrt(size / Math.PI);
      if (!corners.length) return context.arc(0, 0, radius, 0, 2 * Math.PI);
      corners.forEach(([x, y], at) => context[at ? "lineTo" : "moveTo"](x * radius, y * radius));
      context.closePath();
    },
  });
  const DIAMOND = symbol([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]);
  const dashed = (one) => ({ ideal: "5 4", target: "1.5 3" })[one.role] ?? (one.name ? of(LOOKS.dashes, one.look) : "");
  const lineColour = (one) => ({ ideal: SOFT, target: INK })[one.role] ?? colour(one);
  const measured = (one) => one.role === "measured";
  const hatches = (one) => of(LOOKS.hatches, one.look).map((angle) => `url(#hatch${angle})`);

  // Lines in the colour of the paper, laid over a bar at each of its angles.
  function hatchPatterns() {
    const angles = [...new Set(LOOKS.hatches.flat())];
    const patterns = angles.map((angle) =>
      drawn("pattern", { id: `hatch${angle}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${angle})` },
        drawn("path", { d: "M0,3H6", stroke: PAPER, "stroke-width": 1.6 })));
    document.body.append(drawn("svg", { width: 0, height: 0, "aria-hidden": "true", style: "position:absolute" }, drawn("defs", {}, ...patterns)));
  }

  function legend(picture, bars) {
    if (!picture.entries.length) return [];
    const items = picture.entries.map((one) => {
      const mark = drawn("svg", { width: 26, height: 14, "aria-hidden": "true" });
      const path = (corners, attributes) => {
        const context = d3.path();
        symbol(corners).draw(context, 50);
        return drawn("path", { d: String(context), transform: "translate(13,7)", "stroke-width": 1.2, ...attributes });
      };
      if (one.role === "predicted") mark.append(path([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]], { stroke: INK, fill: PAPER }));
      else if (bars && measured(one)) for (const fill of [colour(one), ...hatches(one)]) mark.append(drawn("rect", { x: 3, y: 1, width: 20, height: 12, fill }));
      else {
        if (!one.loose) mark.append(drawn("path", { d: "M0,7H26", stroke: lineColour(one), "stroke-width": measured(one) ? 2 : 1.5, "stroke-dasharray": dashed(one) }));
        if (measured(one) && !one.unmarked) mark.append(path(of(LOOKS.shapes, one.look), { stroke: colour(one), fill: colour(one) }));
      }
      return made("li", {}, mark, one.doubtful ? `${one.name} !` : one.name);
    });
    const list = made("ul", { class: "legend" }, ...items);
    if (!picture.legend) return [list];
    return [made("p", { class: "legend-title" }, picture.legend), list];
  }

  // ---- Texts --------------------------------------------------------------------------------------------------
  const LETTERS = 12;
  const ruler = document.createElement("canvas").getContext("2d");
  const FONT = `${LETTERS}px ${getComputedStyle(document.documentElement).fontFamily}`;
  function wide(text) {
    ruler.font = FONT;
    return ruler.measureText(text).width;
  }

  // In lines that are no wider, broken at spaces, and behind a sign in a word that is wider by itself.
  function wrapped(text, width) {
    const lines = [];
    for (const paragraph of text.split("\n")) {
      let line = "";
      for (const word of paragraph.match(/\S+\s*/g) ?? []) {
        const pieces = wide(word.trimEnd()) <= width ? [word] : word.match(/[^=&+_,-]*[=&+_,-]*/g).filter(Boolean);
        for (const piece of pieces) {
          if (line && wide((line + piece).trimEnd()) > width) {
            lines.push(line.trimEnd());
            line = "";
          }
          line += piece;
        }
      }
      lines.push(line.trimEnd());
    }
    return lines.filter(Boolean);
  }

  function written(svg, text, x, y, attributes = {}) {
    svg.append(drawn("text", { x, y, "text-anchor": "start", fill: INK, stroke: PAPER, "stroke-width": 4, "paint-order": "stroke", "stroke-linejoin": "round", ...attributes }, text));
  }

  const pixels = (svg) => [svg.scale("x").apply, svg.scale("y").apply];
  const FRAME = { style: { fontSize: `${LETTERS}px`, background: "transparent", overflow: "visible" } };

  // ---- Lines --------------------------------------------------------------------------------------------------
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

  // As many of an axis' own ticks as have room, evenly.
  function thinned(axis, room) {
    const at = axis.steps === "linear" ? (value) => value : Math.log;
    const [low, high] = axis.domain.map(at);
    const place = (value) => ((at(value) - low) / (high - low)) * room;
    for (let step = 1; step < axis.ticks.length; step += 1) {
      const kept = axis.ticks.filter((_, index) => index % step === 0);
      const fits = (value, index) => !index || place(value) - place(kept[index - 1]) >= (wide(shown(value)) + wide(shown(kept[index - 1]))) / 2 + 8;
      if (kept.every(fits)) return kept;
    }
    return axis.ticks.slice(0, 1);
  }

  // What belongs to one series lies a little beside that of the next where they have intervals.
  function shifts(panel) {
    const all = panel.series.filter(measured);
    const crowded = all.length > 1 && all.some((one) => one.points?.some((p) => p.lo !== undefined));
    return new Map(all.map((one, at) => [one, crowded ? (at - (all.length - 1) / 2) * Math.min(4, 20 / all.length) : 0]));
  }

  const titled = (panel) => (panel.title ? `${panel.title}: ${panel.y.title}` : panel.y.title);
  const pointsOf = (one) => one.points ?? one.xs.map((x, at) => ({ x, y: one.ys[at] }));

  function lines(panel, width, { last, flat }) {
    const { x, y } = panel;
    const height = flat ? 110 + (last ? 30 : 0) : Math.min(320, Math.max(240, width * 0.58));
    const [marginLeft, marginRight, marginTop, marginBottom] = [58, 16, 24, last || !flat ? 42 : 12];
    const shift = shifts(panel);
    const front = panel.series.some((one) => one.points?.some((p) => p.best)); // then all others are hollow
    const clamped = (value) => Math.max(y.domain[0], Math.min(y.domain[1], value));
    const marks = [Plot.rectX(panel.spans ?? [], { x1: "0", x2: "1", fill: INK, fillOpacity: 0.09 })];
    const ends = [];
    for (const one of panel.series) {
      const points = pointsOf(one);
      const dx = shift.get(one) ?? 0;
      const known = points.filter((p) => p.y !== null);
      if (!one.loose) marks.push(Plot.line(points, { x: "x", y: (p) => p.y ?? NaN, stroke: lineColour(one), strokeDasharray: dashed(one) || undefined, strokeWidth: !measured(one) ? 1.5 : one.unmarked ? 1.2 : 1.8, dx }));
      if (!measured(one) || one.unmarked) continue;
      marks.push(
        Plot.ruleX(known.filter((p) => p.lo !== undefined), { x: "x", y1: (p) => clamped(p.lo), y2: (p) => clamped(p.hi), stroke: colour(one), strokeWidth: 1.5, dx }),
        Plot.ruleY(known.filter((p) => p.xlo !== undefined), { y: "y", x1: (p) => Math.max(x.domain[0], p.xlo), x2: (p) => Math.min(x.domain[1], p.xhi), stroke: colour(one), strokeWidth: 1.5 }),
        Plot.dot(known, { x: "x", y: "y", stroke: colour(one), strokeWidth: 1.2, symbol: shape(one), r: 3.6, dx, fill: front ? (p) => (p.best ? colour(one) : PAPER) : colour(one) }),
      );
      for (const p of points) if (p.ended) ends.push([one, p]);
    }
    const svg = Plot.plot({
      ...FRAME, width, height, marginLeft, marginRight, marginTop, marginBottom,
      x: {
        type: x.steps === "linear" ? "linear" : "log", base: 2, domain: x.domain, tickFormat: last || !flat ? shown : () => "",
        label: last || !flat ? x.title : null, labelAnchor: "center", labelArrow: "none",
        ticks: x.ticks ? thinned(x, width - marginLeft - marginRight) : x.steps === "log10" ? logTicks(x.domain) : Math.max(3, Math.min(8, Math.floor(width / 80))),
      },
      y: { type: y.steps === "linear" ? "linear" : "log", domain: y.domain, label: titled(panel), labelArrow: "none", grid: true, ticks: y.ticks ?? (y.steps === "linear" ? (flat ? 3 : 5) : logTicks(y.domain)), tickFormat: shown },
      marks,
    });
    const [across, down] = pixels(svg);
    const endPlace = (one, p) => {
      const same = ends.filter(([, other]) => other.x === p.x);
      return across(p.x) + (same.findIndex(([other]) => other === one) - (same.length - 1) / 2) * 9;
    };
    for (const [one, p] of ends)
      svg.append(drawn("path", { d: "M-4,-4L4,4M-4,4L4,-4", transform: `translate(${endPlace(one, p)},${marginTop + 7})`, stroke: colour(one), "stroke-width": 2, class: "ended" }));
    for (const [x, same] of d3.group(ends, ([, p]) => p.x))
      written(svg, [...new Set(same.map(([, p]) => p.ended))].join("/"), across(x), marginTop + 24, { "text-anchor": "middle" });
    beside(svg, panel, width, height, shift);
    const targets = panel.series.filter(measured).flatMap((one) =>
      pointsOf(one).filter((p) => p.y !== null || p.ended).map((p) => ({
        x: p.y === null ? endPlace(one, p) : across(p.x) + (shift.get(one) ?? 0),
        y: p.y === null ? marginTop + 7 : down(p.y),
        series: one, point: p,
        told: p.told ?? [one.name, `${y.measure} ${shown(p.y)} ${y.unit}`, `${shown(p.x)} ${x.unit} ${x.measure}`].filter(Boolean).join("\n"),
      })));
    return { svg, targets, reach: 60 };
  }

  const CROWDED = 16; // points from which doubts stand at the edge, for there is no room beside each
  // Labels and doubts stand where nobody takes them for another point's, as plot/labels.py places them on paper: beside
  // their own point, or at the end of a short line from it; else nowhere, but in the tip.
  function beside(svg, panel, width, height, shift) {
    const [across, down] = pixels(svg);
    const all = panel.series.filter((one) => measured(one) && one.points).flatMap((one) =>
      one.points.filter((p) => p.y !== null).map((p) => ({ one, p, x: across(p.x) + shift.get(one), y: down(p.y) })));
    if (all.length > CROWDED && !all.some(({ p }) => p.label)) {
      for (const { one, p, x } of all)
        if (p.doubtful) written(svg, "!", x, svg.scale("y").range[0] - 5, { "text-anchor": "middle", fill: colour(one) });
      return;
    }
    for (const spot of all) {
      spot.text = [spot.p.label, spot.p.doubtful ? "!" : ""].filter(Boolean).join(" ");
      spot.half = wide(spot.text) / 2 + 1;
    }
    const strokes = panel.series.flatMap((one) => {
      const known = pointsOf(one).map((p) => ({ ...p, at: p.y === null ? null : [across(p.x) + (shift.get(one) ?? 0), down(p.y)] }));
      const joined = one.loose ? [] : d3.pairs(known).filter(([p, q]) => p.at && q.at).map(([p, q]) => [p.at, q.at]);
      const upward = known.filter((p) => p.at && p.lo !== undefined).map((p) => [[p.at[0], down(p.lo)], [p.at[0], down(p.hi)]]);
      const along = known.filter((p) => p.at && p.xlo !== undefined).map((p) => [[across(p.xlo), p.at[1]], [across(p.xhi), p.at[1]]]);
      return [...joined, ...upward, ...along];
    });
    const room = { left: svg.scale("x").range[0], top: 0, right: width, bottom: svg.scale("y").range[0] };
    for (const { text, box, leader } of placed(all, strokes, room)) {
      if (leader) svg.append(drawn("path", { d: `M${leader[0]}L${leader[1]}`, stroke: SOFT, "stroke-width": 0.8, class: "leader" }));
      written(svg, text, (box.left + box.right) / 2, (box.top + box.bottom) / 2, { "text-anchor": "middle", dy: "0.32em", class: "beside" });
    }
  }

  const [RADIUS, HALF] = [4.5, 6]; // of a marker; of a line of letters
  const [UNMISTAKABLE, ALONE, REACHES, WAYS] = [1.5, 1.15, [3.5, 5.5, 8], 16]; // as in plot/labels.py

  function placed(spots, strokes, room) {
    const boxAt = (x, y, half) => ({ left: x - half, right: x + half, top: y - HALF, bottom: y + HALF });
    const gap = (box, { x, y }) => Math.hypot(Math.max(box.left - x, 0, x - box.right), Math.max(box.top - y, 0, y - box.bottom));
    const meets = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
    const crossed = (box, [[x, y], [toX, toY]]) => {
      let [begin, end] = [0, 1];
      for (const [step, low, high] of [[toX - x, box.left - x, box.right - x], [toY - y, box.top - y, box.bottom - y]]) {
        if (step === 0 && (low >= 0 || high <= 0)) return false;
        if (step === 0) continue;
        begin = Math.max(begin, Math.min(low / step, high / step));
        end = Math.min(end, Math.max(low / step, high / step));
      }
      return begin < end;
    };
    const side = ([[x, y], [toX, toY]], [a, b]) => (toX - x) * (b - y) - (toY - y) * (a - x);
    const cross = (a, b) => side(a, b[0]) * side(a, b[1]) <= 0 && side(b, a[0]) * side(b, a[1]) <= 0;
    const far = ([[x, y], [toX, toY]], point) => {
      const share = ((point.x - x) * (toX - x) + (point.y - y) * (toY - y)) / ((toX - x) ** 2 + (toY - y) ** 2);
      const at = Math.max(0, Math.min(1, share));
      return Math.hypot(point.x - x - at * (toX - x), point.y - y - at * (toY - y));
    };
    // What lies so near to a point that its words may meet it.
    const around = (spot) => {
      const reach = (REACHES.at(-1) + 3) * RADIUS + 2 * (spot.half + HALF);
      const square = { left: spot.x - reach, right: spot.x + reach, top: spot.y - reach, bottom: spot.y + reach };
      return {
        others: spots.filter((one) => one !== spot && Math.abs(one.x - spot.x) < reach && Math.abs(one.y - spot.y) < reach),
        strokes: strokes.filter((one) => crossed(square, one)),
      };
    };
    const free = (box, strokes) => box.left >= room.left && box.right <= room.right && box.top >= room.top && box.bottom <= room.bottom && !strokes.some((one) => crossed(box, one));
    const own = (spot, { others, strokes }) => [[0, -1], [1, 0], [-1, 0], [0, 1], [1, -1], [-1, -1], [1, 1], [-1, 1]].map(([right, down]) => {
      const apart = (RADIUS * 1.6) / Math.hypot(right, down);
      return { box: boxAt(spot.x + right * (apart + spot.half), spot.y + down * (apart + HALF), spot.half) };
    }).filter(({ box }) => {
      const middle = (one) => Math.hypot((box.left + box.right) / 2 - one.x, (box.top + box.bottom) / 2 - one.y);
      return free(box, strokes) && others.every((other) => gap(box, other) >= UNMISTAKABLE * gap(box, spot) && middle(other) > middle(spot));
    });
    const led = (spot, { others, strokes }) => REACHES.flatMap((reach) => d3.range(WAYS).map((way) => {
      const [x, y] = [Math.cos((2 * Math.PI * way) / WAYS), Math.sin((2 * Math.PI * way) / WAYS)];
      const inside = Math.min(spot.half / Math.abs(x), HALF / Math.abs(y));
      const leader = [RADIUS, reach * RADIUS].map((r) => [spot.x + x * r, spot.y + y * r]);
      return { leader, box: boxAt(spot.x + x * (reach * RADIUS + inside), spot.y + y * (reach * RADIUS + inside), spot.half) };
    })).filter(({ box, leader }) => free(box, strokes) && others.every((other) => gap(box, other) > RADIUS && far(leader, other) > ALONE * RADIUS));
    const bars = (a, b) => meets(a.box, b.box) || (a.leader && crossed(b.box, a.leader)) || (b.leader && crossed(a.box, b.leader)) || (a.leader && b.leader && cross(a.leader, b.leader));
    const found = [];
    const said = spots.filter(({ text }) => text).map((spot) => [spot, around(spot)]).map(([spot, near]) => ({ spot, near, own: own(spot, near) }));
    for (const { spot, near, own } of d3.sort(said, ({ spot }) => !spot.p.best, ({ own }) => own.length)) {
      const place = [...own, ...led(spot, near)].find((one) => !found.some((other) => bars(one, other)));
      if (place) found.push({ ...place, text: spot.text });
    }
    return found;
  }

  // ---- Bars ---------------------------------------------------------------------------------------------------
  const [NAME, BAR, APART] = [17, 15, 10];

  function bars(panel, width) {
    const stacked = panel.kind === "stacked";
    const own = panel.series.filter(measured);
    const side = stacked ? 1 : own.length;
    const [left, top] = [4, 4];
    let down = 0;
    const places = panel.places.map((name) => {
      const names = wrapped(name, width - left - 14);
      const from = down;
      down += names.length * NAME + side * BAR + APART;
      return { names, from, bars: from + names.length * NAME };
    });
    const barOf = (one, p) => places[p.x].bars + (stacked ? 0 : own.indexOf(one) * BAR);
    const ends = places.map(() => 0);
    const boxes = own.flatMap((one) => one.points.filter((p) => p.y !== null).map((p) => {
      const x1 = stacked ? ends[p.x] : 0;
      ends[p.x] = x1 + p.y;
      return { one, p, x1, x2: x1 + p.y, y1: barOf(one, p), y2: barOf(one, p) + BAR - 2 };
    }));
    const predicted = panel.series.filter((one) => one.role === "predicted").flatMap((one) => one.points);
    const domain = panel.y.domain;
    const foreseen = { x: "y", y: (p) => places[p.x].bars + BAR / 2 - 1, r: 4.5, symbol: DIAMOND, fill: PAPER, stroke: INK, strokeWidth: 1.5 };
    const box = { x1: "x1", x2: "x2", y1: "y1", y2: "y2" };
    const fills = own.flatMap((one) => {
      const mine = boxes.filter((bar) => bar.one === one);
      return [colour(one), ...hatches(one)].map((fill) => Plot.rect(mine, { ...box, fill, stroke: stacked ? PAPER : undefined, strokeWidth: stacked ? 1 : undefined }));
    });
    // What is written behind each bar: behind the end of its interval, too, which would strike it through.
    const foreseenAt = (place) => Math.max(0, ...predicted.filter((p) => p.x === place).map((p) => p.y + (domain[1] - domain[0]) * (6 / width)));
    const mark = (doubtful) => (doubtful ? " !" : "");
    const behind = (stacked
      ? places.map(({ bars }, at) => ({ text: shown(ends[at]) + mark(own.some((one) => one.points.some((p) => p.x === at && p.doubtful))), end: ends[at], y: bars }))
      : own.flatMap((one) => one.points.map((p) => ({
          text: p.y === null ? p.ended : (p.written || shown(p.y)) + mark(p.doubtful),
          end: Math.max(p.y ?? 0, Math.min(p.hi ?? 0, domain[1]), foreseenAt(p.x)),
          y: barOf(one, p),
        })))).filter(({ text }) => text);
    // The axis ends where the longest of these still has room behind it.
    const room = width - left;
    const right = Math.min(room / 2, Math.max(10, ...behind.filter(({ end }) => end > domain[0]).map(({ text, end }) =>
      room - ((room - 6 - wide(text)) * (domain[1] - domain[0])) / (end - domain[0]))));
    const svg = Plot.plot({
      ...FRAME, width, height: down + top + 42, marginLeft: left, marginRight: right, marginTop: top, marginBottom: 42,
      x: { label: panel.y.title, labelAnchor: "center", labelArrow: "none", domain, ticks: panel.y.ticks ?? Math.max(3, Math.min(6, Math.floor(width / 90))), tickFormat: shown, grid: true },
      y: { axis: null, domain: [down, 0], type: "linear" },
      marks: [
        ...fills,
        Plot.ruleX([0], { stroke: SOFT }),
        panel.lineAt === undefined ? null : Plot.ruleX([panel.lineAt], { stroke: INK, strokeDasharray: "4 3" }),
        Plot.ruleY(boxes.filter(({ p }) => p.lo !== undefined), { y: (b) => (b.y1 + b.y2) / 2, x1: (b) => b.p.lo, x2: (b) => Math.min(b.p.hi, domain[1]), stroke: INK, strokeWidth: 1.5 }),
        Plot.dot(predicted, foreseen),
      ],
    });
    const [across] = pixels(svg);
    places.forEach(({ names, from }) => names.forEach((line, at) => written(svg, line, left + 4, top + from + at * NAME + 12)));
    for (const { text, end, y } of behind) {
      const fits = across(end) + 5 + wide(text) <= width;
      written(svg, text, fits ? across(end) + 5 : width - 1, top + y + BAR / 2 - 1, { dy: "0.32em", "text-anchor": fits ? "start" : "end", class: "behind" });
    }
    const targets = own.flatMap((one) => one.points.filter((p) => p.y !== null || p.ended).map((p) => {
      const found = boxes.find((bar) => bar.one === one && bar.p === p) ?? { x1: 0, x2: 0, y1: barOf(one, p), y2: barOf(one, p) + BAR - 2 };
      const [x1, x2] = [across(found.x1), across(found.x2)];
      return { x: (x1 + x2) / 2, y: top + (found.y1 + found.y2) / 2, box: [x1, top + found.y1, Math.max(2, x2 - x1), found.y2 - found.y1], series: one, point: p, told: p.told };
    }));
    if (!stacked) targets.sort((a, b) => a.y - b.y);
    else targets.sort((a, b) => a.y - b.y || a.x - b.x);
    return { svg, targets, reach: Infinity };
  }

  // ---- Cells --------------------------------------------------------------------------------------------------
  function cells(panel, width) {
    const count = panel.places.length;
    const most = Math.min(width * 0.42, Math.max(...panel.places.map((name, at) => wide(`${at + 1}: ${name}`))) + 8);
    const names = panel.places.map((name, at) => wrapped(`${at + 1}: ${name}`, most - 8));
    const across = Math.min(90, (width - most - 2) / count);
    const high = Math.max(26, ...names.map((lines) => lines.length * 15 + 6));
    const [top, bottom] = [20, 24];
    const svg = drawn("svg", { width, height: top + count * high + bottom, viewBox: `0 0 ${width} ${top + count * high + bottom}`, style: `font: ${FONT}` });
    names.forEach((lines, row) => lines.forEach((line, at) =>
      written(svg, line, most - 8, top + (row + 0.5) * high + (at - (lines.length - 1) / 2) * 15, { dy: "0.32em", "text-anchor": "end" })));
    panel.places.forEach((_, at) => written(svg, String(at + 1), most + (at + 0.5) * across, 14, { "text-anchor": "middle" }));
    const targets = panel.cells.map((cell) => {
      const box = [most + cell.column * across, top + cell.row * high, across, high];
      const [x, y, w, h] = box;
      const place = { x: x + 1, y: y + 1, width: w - 2, height: h - 2 };
      svg.append(drawn("rect", { ...place, fill: "none", stroke: "var(--line)" }));
      if (cell.share !== undefined) svg.append(drawn("rect", { ...place, fill: "var(--s0)", "fill-opacity": 0.05 + 0.5 * cell.share }));
      else if (!cell.text) svg.append(drawn("rect", { ...place, fill: "var(--shade)" }));
      const lines = wrapped(cell.text, w - 4);
      lines.forEach((line, at) => written(svg, line, x + w / 2, y + h / 2 + (at - (lines.length - 1) / 2) * 14, { dy: "0.32em", "text-anchor": "middle", stroke: "none" }));
      const told = [`${panel.y.title}: ${panel.places[cell.row]}`, `${panel.x.title}: ${panel.places[cell.column]}`, cell.text].join("\n");
      return { x: x + w / 2, y: y + h / 2, box, told, cell };
    });
    written(svg, panel.x.title, most + (count * across) / 2, top + count * high + 17, { "text-anchor": "middle" });
    return { svg, targets: targets.filter(({ cell }) => cell.text), reach: Infinity };
  }

  const DRAWN = { lines, bars, stacked: bars, cells };

  // ---- A panel, pointed at ------------------------------------------------------------------------------------
  const clampedTo = (value, low, high) => Math.max(low, Math.min(high, value));

  function pointed(place, panel, how, heard) {
    place.setAttribute("aria-roledescription", "picture; arrow keys go from point to point");
    const tip = made("div", { class: "tip", "aria-hidden": "true" }); // `heard` says the same to a screen reader
    const ring = drawn("rect", { fill: "none", stroke: INK, "stroke-width": 1.5, class: "ring" });
    let svg, targets, reach, width, at;

    const draw = (wanted) => {
      if (wanted < 1 || wanted === width) return;
      width = wanted;
      ({ svg, targets, reach } = DRAWN[panel.kind](panel, width, how));
      svg.setAttribute("aria-hidden", "true"); // what it shows is said in the caption, and point by point below it
      svg.addEventListener("pointermove", follow);
      svg.addEventListener("pointerdown", follow);
      svg.addEventListener("pointerleave", () => tell(undefined));
      place.replaceChildren(svg, tip);
      tell(undefined);
    };
    const tell = (found) => {
      at = found;
      const one = targets[found];
      tip.hidden = !one;
      ring.remove();
      heard.textContent = one ? one.told.split("\n").join(", ") : "";
      if (!one) return;
      const [x, y, w, h, rx] = one.box ? [...one.box, 0] : [one.x - 8, one.y - 8, 16, 16, 8];
      filled(ring, { x, y, width: w, height: h, rx }, []);
      svg.append(ring);
      tip.textContent = one.told;
      const zoom = svg.getBoundingClientRect().width / width;
      tip.style.left = `${clampedTo(one.x * zoom - tip.offsetWidth / 2, 0, Math.max(0, place.clientWidth - tip.offsetWidth))}px`;
      const above = y * zoom - tip.offsetHeight - 6;
      tip.style.top = `${above > -40 ? above : (y + h) * zoom + 6}px`;
    };
    function follow(event) {
      const frame = svg.getBoundingClientRect();
      const zoom = frame.width / width;
      const [x, y] = [(event.clientX - frame.left) / zoom, (event.clientY - frame.top) / zoom];
      const far = (one) => (one.box ? outside(x, one.box[0], one.box[2]) * 0.2 + outside(y, one.box[1], one.box[3]) * 5 : Math.hypot(one.x - x, one.y - y));
      const best = d3.minIndex(targets, far);
      tell(best >= 0 && far(targets[best]) <= reach ? best : undefined);
    }
    const outside = (value, from, size) => Math.max(0, from - value, value - from - size);
    place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return tell(undefined);
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, PageDown: 25, PageUp: -25 }[event.key];
      const end = { Home: 0, End: targets.length - 1 }[event.key];
      if ((step === undefined && end === undefined) || !targets.length) return;
      event.preventDefault();
      const first = step > 0 ? 0 : targets.length - 1;
      tell(end ?? (at === undefined ? first : (at + step + targets.length) % targets.length));
    });
    place.addEventListener("blur", () => tell(undefined));
    const wideNow = () => Math.floor(Math.min(how.flat ? 900 : 640, place.clientWidth));
    draw(wideNow());
    new ResizeObserver(() => draw(wideNow())).observe(place);
    addEventListener("beforeprint", () => draw(how.flat ? 900 : 440)); // two beside each other on paper
    addEventListener("afterprint", () => draw(wideNow()));
    return () => targets;
  }

  // ---- The figures of a picture, for who does not see it --------------------------------------------------------
  function figures(panel, legend, targets) {
    const line = (name, ...texts) => made("tr", {}, ...texts.map((text, at) => made(name, name === "th" ? { scope: "col" } : at ? { class: "n" } : {}, text)));
    const table = (caption, head, rows) => made("table", {}, made("caption", {}, caption), made("thead", {}, line("th", ...head)), made("tbody", {}, ...rows.map((row) => line("td", ...row))));
    if (panel.kind === "cells")
      return table(panel.y.title, ["job", panel.x.title, "slowdown"], targets.map(({ cell }) => [panel.places[cell.row], panel.places[cell.column], cell.text]));
    const withUnit = (axis) => (axis.unit ? `${axis.measure} (${axis.unit})` : axis.measure);
    const several = panel.series.filter(measured).length > 1;
    const place = (p) => (panel.kind === "lines" ? shown(p.x) : panel.places[p.x].split("\n").join(": "));
    const ends = (p) => (p.lo === undefined ? "" : `${shown(p.lo)} to ${shown(p.hi)}`);
    const intervals = targets.some(({ point }) => point.lo !== undefined);
    const head = [...(several ? [legend || "series"] : []), panel.kind === "lines" ? withUnit(panel.x) : "row", withUnit(panel.y), ...(intervals ? ["95 % interval"] : [])];
    const rows = targets.map(({ series, point }) => [...(several ? [series.name] : []), place(point), point.y === null ? point.ended : point.written || shown(point.y), ...(intervals ? [ends(point)] : [])]);
    return table(titled(panel), head, rows);
  }

  function figure(box) {
    const picture = JSON.parse(box.querySelector("script").textContent);
    const heard = box.querySelector(".told");
    const flat = box.classList.contains("over-time");
    const places = [...box.querySelectorAll(".plot")];
    box.querySelector(".panels").before(...legend(picture, picture.panels[0].kind !== "lines"));
    const found = picture.panels.map((panel, at) => pointed(places[at], panel, { flat, last: at === places.length - 1 }, heard));
    const more = made("details", { class: "figures" }, made("summary", {}, "Figures of this picture"));
    more.addEventListener("toggle", () => {
      if (!more.open || more.children.length > 1) return;
      const name = box.querySelector("h3, h4").textContent;
      const tables = picture.panels.map((panel, at) => figures(panel, picture.legend, found[at]()));
      more.append(made("div", { class: "tables" }, ...tables.map((table) => made("div", { class: "box", role: "region", tabindex: 0, "aria-label": `${name}: ${table.caption.textContent}` }, table))));
    });
    box.append(more);
  }

  hatchPatterns();
  document.querySelectorAll("figure:has(> script)").forEach(figure);
})();
