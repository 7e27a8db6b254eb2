// The page works without this, but for its pictures. It adds these, the choice of an experiment, dark, print and copy.
"use strict";
(() => {
  const USUAL = 640; // of a picture that nobody sees yet, in CSS pixels
  const NARROWEST = 470; // a picture is laid out no narrower but scaled, for its labels need their room
  const FLEXIBLE = 300; // only panels are as wide as this, and labels at their right edge stand as far to the right

  // ---- Pictures ----
  const drawn = new Map(); // figure -> the width that it was drawn for

  function stretch(part, by) {
    for (const [name, value] of Object.entries(part)) {
      if (name === "data") continue;
      if ((name === "width" || name === "x") && typeof value === "number" && value >= FLEXIBLE) part[name] += by;
      else if (value && typeof value === "object") stretch(value, by);
    }
  }

  async function drawIn(place, description) {
    const { spec } = vegaLite.compile(description);
    const container = document.createElement("div"); // to which Vega gives a name of its own
    place.replaceChildren(container);
    await new vega.View(vega.parse(spec), { renderer: "svg", container, hover: false }).runAsync();
    const svg = container.querySelector("svg");
    container.setAttribute("aria-hidden", "true"); // a screen reader has the picture's name, and the tables
    return svg.viewBox.baseVal.width;
  }

  // Drawn as it is described, which tells how wide its labels are; then its panels get what is left of the room.
  async function draw(figure) {
    const place = figure.querySelector(".drawing");
    const room = place.clientWidth || USUAL;
    if (drawn.get(figure) === room) return;
    drawn.set(figure, room);
    const description = JSON.parse(figure.querySelector("script").textContent);
    const width = await drawIn(place, description);
    stretch(description.vconcat, Math.max(room, NARROWEST) - width);
    await drawIn(place, description);
  }

  const isSeen = (figure) => figure.checkVisibility();
  const drawSeen = () => [...document.querySelectorAll("figure.picture")].filter(isSeen).forEach(draw);
  document.querySelectorAll("main details").forEach((details) => details.addEventListener("toggle", drawSeen));
  let waiting = 0;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(drawSeen, 150);
  });

  // ---- One experiment at a time ----
  const sections = [...document.querySelectorAll("main > section")];
  const cards = [...document.querySelectorAll(".cards a")];
  function choose() {
    const chosen = sections.find((section) => `#${section.id}` === location.hash) ?? sections[0];
    for (const section of sections) section.hidden = section !== chosen;
    for (const card of cards) {
      if (card.hash === `#${chosen.id}`) card.setAttribute("aria-current", "true");
      else card.removeAttribute("aria-current");
    }
    drawSeen();
  }
  for (const card of cards)
    card.addEventListener("click", (event) => {
      event.preventDefault(); // the page stays where it is
      history.pushState(null, "", card.hash);
      choose();
    });
  addEventListener("popstate", choose);
  if (sections.length) choose();

  // ---- Dark, print, copy ----
  const theme = document.getElementById("theme");
  const preference = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (document.documentElement.dataset.theme ?? (preference.matches ? "dark" : "light")) === "dark";
  const nameTheme = () => (theme.textContent = isDark() ? "Light" : "Dark");
  theme.addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  preference.addEventListener("change", nameTheme);
  nameTheme();
  document.getElementById("print").addEventListener("click", () => print());
  document.querySelector(".buttons").hidden = false;

  for (const button of document.querySelectorAll(".copy")) {
    const code = button.parentElement.querySelector("code");
    button.hidden = false;
    button.addEventListener("click", async () => {
      getSelection().selectAllChildren(code); // where the browser lets no page write to the clipboard, Ctrl-C does
      await navigator.clipboard?.writeText(code.textContent);
      button.textContent = "copied";
    });
  }

  // Everything is on paper: what is folded, and every experiment.
  const folded = [];
  let hidden = [];
  addEventListener("beforeprint", () => {
    hidden = sections.filter((section) => section.hidden);
    for (const section of hidden) section.hidden = false;
    for (const details of document.querySelectorAll("main details:not([open])")) folded.push(details), (details.open = true);
    drawSeen();
  });
  addEventListener("afterprint", () => {
    for (const details of folded.splice(0)) details.open = false;
    for (const section of hidden) section.hidden = true;
  });
})();
