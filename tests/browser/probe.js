"use strict";
// Runs inside a report after its own scripts: uses every control, then writes what it found into the document.
const found = {
  charts: [],
  errors: [],
  tables: [],
  findings: [],
  timelines: []
};
const wrong = text => found.errors.push(text);
addEventListener("error", event => wrong("script: " + event.message));

const fire = (target, type) => {
  const box = target.getBoundingClientRect();
  target.dispatchEvent(
      new PointerEvent(type, {clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, bubbles: true}));
};
const drawn = () => {
  for (const e of document.querySelectorAll("svg *, svg")) {
    for (const a of e.attributes) {
      if (/^(aria|data)-|^class$/.test(a.name)) continue;
      if (/NaN|Infinity|undefined|null/.test(a.value)) wrong(`${e.tagName} ${a.name}="${a.value.slice(0, 80)}"`);
      if (/^(width|height|r)$/.test(a.name) && !(Number(a.value) >= 0)) wrong(`${e.tagName} ${a.name}="${a.value}"`);
    }
  }
  if (/NaN|Infinity|undefined|\[object/.test(document.body.innerText.replace(/\S*hostile\S*/g, "")))
    wrong("text shows a value that is none");
};

for (const chart of document.querySelectorAll("[data-chart]")) {
  const series = [...chart.querySelectorAll("g.series")], box = chart.viewBox.baseVal;
  const points = series.map(g => (g.querySelector(".dots").getAttribute("d").match(/M/g) || []).length);
  if (points.some(n => n === 0)) wrong(`${chart.dataset.chart}: a series without points`);
  for (const g of series) {
    const size = g.getBBox();
    if (!(size.width > 0 && size.height > 0)) wrong(`${chart.dataset.chart}: a series of no extent`);
    if (size.x < box.x - 9 || size.x + size.width > box.width + 9)
      wrong(`${chart.dataset.chart}: outside of the drawing`);
    if (getComputedStyle(g.querySelector(".dots")).fill === "rgb(0, 0, 0)")
      wrong(`${chart.dataset.chart}: a series without colour`);
  }
  const looks = series.map(g => getComputedStyle(g.querySelector(".dots")).fill + shape(g))
                    .filter((look, i, all) => all.indexOf(look) !== i);
  if (looks.length) wrong(`${chart.dataset.chart}: two series look alike`);
  found.charts.push({
    title: chart.dataset.chart,
    series: series.length,
    points: points.reduce((a, b) => a + b, 0),
    fastest: chart.querySelectorAll("g.series .halo").length,
    chosen: chart.querySelectorAll("g.series .ring").length
  });
}
// A marker's outline relative to its first point, rounded: tells markers apart wherever they stand.
function shape(g) {
  const first = g.querySelector(".dots").getAttribute("d").split("Z")[0].match(/-?[\d.]+/g).map(Number);
  return first.map((v, i) => Math.round(v - first[i % 2])).join(" ");
}
for (const timeline of document.querySelectorAll("[data-timeline]"))
  found.timelines.push(timeline.querySelectorAll("g.series").length);
for (const item of document.querySelectorAll(".findings li")) found.findings.push(item.textContent);
for (const table of document.querySelectorAll("table.numbers:not(.plain)")) {
  const names = () => [...table.querySelectorAll("tbody tr")].map(row => row.firstChild.textContent);
  const one = {
    fastest: table.querySelectorAll("td.fastest").length,
    chosen: table.querySelectorAll("td.chosen").length,
    rows: names().length
  };
  const button = table.querySelectorAll("thead button")[1];
  if (button) {
    button.click();
    one.ascending = names();
    button.click();
    one.descending = names();
  }
  found.tables.push(one);
}
drawn();

for (const hit of document.querySelectorAll(".hit")) {
  fire(hit, "pointermove");
  if (document.getElementById("tip").hidden || !document.querySelector("#tip td")) wrong("no tooltip");
  fire(hit, "pointerleave");
  if (!document.getElementById("tip").hidden) wrong("the tooltip stays");
}
for (const legend of document.querySelectorAll(".legend")) {
  const card = legend.parentElement, seen = () => card.querySelectorAll("[data-series]:not(.off)").length;
  const all = seen();
  for (const button of legend.querySelectorAll("button[aria-pressed]")) {
    fire(button, "pointerenter");
    if (!card.querySelector("[data-series].hot") && all) wrong("hovering a name marks no series");
    button.click();
    if (seen() >= all && all) wrong("a click on a name hides nothing");
    button.click();
    fire(button, "pointerleave");
  }
  if (seen() !== all) wrong("a second click does not bring the series back");
}
for (const count = document.querySelectorAll("select").length, i = {at: 0}; i.at < count; ++i.at) {
  for (let k = 0; k < (document.querySelectorAll("select")[i.at]?.options.length ?? 0); ++k) {
    const box = document.querySelectorAll("select")[i.at];
    box.selectedIndex = k;
    box.dispatchEvent(new Event("change"));
  }
}
drawn();
if (window.hostile) wrong("a name of the result ran as a script");
if (document.querySelector("hostile")) wrong("a name of the result became markup");
if (!document.getElementById("trouble").hidden)
  wrong("the report itself says: " + document.getElementById("trouble").textContent);
if (document.documentElement.dataset.drawn !== "true") wrong("the page was not drawn to its end");
if (document.documentElement.scrollWidth > innerWidth)
  wrong(`the page is wider than the window: ${document.documentElement.scrollWidth}`);
found.title = document.querySelector("h1")?.textContent;
const out = document.createElement("pre");
out.id = "probe";
out.textContent = encodeURIComponent(JSON.stringify(found));
document.body.append(out);
