"use strict";
// Runs inside a report after its own scripts: uses every control, then writes what it found into the document.
const found = {
  charts: [],
  errors: [],
  tables: [],
  findings: [],
  headlines: [],
  saved: [],
  timelines: [],
  width: innerWidth
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
  for (const t of chart.querySelectorAll("text:not([transform])")) {
    const size = t.getBBox();
    if (size.x < box.x || size.x + size.width > box.width) wrong(`${chart.dataset.chart}: "${t.textContent}" is cut`);
  }
  const colour = g => {
    const style = getComputedStyle(g.querySelector(".dots"));
    return g.classList.contains("other") ? style.stroke : style.fill;
  };
  const looks = series.map(g => [colour(g), shape(g), getComputedStyle(g.querySelector(".dots")).strokeDasharray,
                                 g.classList.contains("other")].join());
  if (new Set(looks).size < looks.length) wrong(`${chart.dataset.chart}: two series look alike`);
  found.charts.push({
    title: chart.dataset.chart,
    series: series.length,
    points: points.reduce((a, b) => a + b, 0),
    fastest: chart.querySelectorAll("g.top .halo").length,
    chosen: chart.querySelectorAll(".ring").length,
    colours: new Set(series.map(colour)).size,
    dashed: series.filter(g => getComputedStyle(g.querySelector(".wire, .bar")).strokeDasharray !== "none").length,
    on_top: onTop(chart)
  });
  for (const label of chart.querySelectorAll("text")) {
    const scale = chart.getBoundingClientRect().width / box.width;
    if (parseFloat(getComputedStyle(label).fontSize) * scale < 10)
      wrong(`${chart.dataset.chart}: text of ${parseFloat(getComputedStyle(label).fontSize) * scale} px`);
  }
  if (chart.querySelectorAll(".axis-title").length === 0) wrong(`${chart.dataset.chart}: no axis title`);
}
// A marker's outline relative to its first point, rounded: distinguishes markers wherever they stand.
function shape(g) {
  const first = g.querySelector(".dots").getAttribute("d").split("Z")[0].match(/-?[\d.]+/g).map(Number);
  return first.map((v, i) => Math.round(v - first[i % 2])).join(" ");
}
// From left to right the series of the uppermost marker at each fastest point: what the reader sees there.
function onTop(chart) {
  chart.scrollIntoView({block: "center"});
  const halos = [...chart.querySelectorAll("g.top .halo")].map(e => e.getBoundingClientRect());
  return halos.sort((a, b) => a.left - b.left).map(box => {
    const there = document.elementsFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return there.find(e => e.matches(".dots"))?.closest("[data-series]").dataset.series ?? "nothing";
  });
}
// The least distance in CIELAB between two of the twelve colours under normal sight, protanopia and deuteranopia, for
// each place in the style sheet that sets them (light, dark, print).
function palettes() {
  const sights = [
    [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    [[.152286, 1.052583, -.204868], [.114503, .786281, .099216], [-.003882, -.048116, 1.051998]],
    [[.367322, .860646, -.227968], [.280085, .672501, .047413], [-.011820, .042940, .968881]]
  ];
  const linear = c => c <= .04045 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4;
  const lab = ([r, g, b]) => {
    const f = t => t > .008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116;
    const x = f((.4124 * r + .3576 * g + .1805 * b) / .95047), y = f(.2126 * r + .7152 * g + .0722 * b),
          z = f((.0193 * r + .1192 * g + .9505 * b) / 1.08883);
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
  };
  const seen = hex => {
    const rgb = [1, 3, 5].map(i => linear(parseInt(hex.slice(i, i + 2), 16) / 255));
    return sights.map(
        m => lab(m.map(row => Math.min(1, Math.max(0, row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2])))));
  };
  const least = [];
  const visit = rules => {
    for (const rule of rules) {
      if (rule.style?.getPropertyValue("--c0")) {
        const colours = Array.from({length: 12}, (_, i) => seen(rule.style.getPropertyValue("--c" + i).trim()));
        least.push(Math.min(...colours.flatMap(
            (a, i) => colours.slice(0, i).flatMap(b => a.map((p, k) => Math.hypot(...p.map((v, d) => v - b[k][d])))))));
      } else if (rule.cssRules) {
        visit(rule.cssRules);
      }
    }
  };
  visit(document.styleSheets[0].cssRules);
  return least;
}
found.palettes = palettes();
found.titles = [...document.querySelectorAll("section.card[id^=cluster] h3")].map(e => e.textContent);
found.choices = [...document.querySelectorAll("section[id*='-s'] select option")].map(e => e.textContent);
found.method = document.querySelector("#method").textContent;
found.command = document.querySelector("#method code").textContent;
for (const timeline of document.querySelectorAll("[data-timeline]"))
  found.timelines.push(timeline.querySelectorAll("g.series").length);
for (const item of document.querySelectorAll(".findings li")) found.findings.push(item.textContent);
for (const item of document.querySelectorAll(".headlines li")) found.headlines.push(item.textContent);

// What a click on each "save" button would write. The page must make it by itself: nothing is fetched.
const kept = [];
window.Blob = class extends Blob {
  constructor(parts, options) {
    super(parts, options);
    kept.push({type: options.type, content: parts.join("")});
  }
};
addEventListener("click", event => {
  const link = event.target.closest?.("a[download]");
  if (!link) return;
  event.preventDefault();
  if (!link.href.startsWith("blob:")) wrong("a download that is no blob: " + link.href.slice(0, 60));
  found.saved.push({name: link.download, ...kept.at(-1)});
}, true);
for (const button of document.querySelectorAll("button.save")) {
  const before = found.saved.length;
  button.click();
  if (found.saved.length !== before + 1) wrong("a click on \"" + button.textContent + "\" saves nothing");
}
for (const one of found.saved) {
  if (one.type !== "image/svg+xml") continue;
  const parsed = new DOMParser().parseFromString(one.content, "image/svg+xml");
  one.root = parsed.documentElement.tagName;
  one.series = [...parsed.querySelectorAll("g[data-series]")].length;
  one.names = [...parsed.querySelectorAll("text")].map(t => t.textContent);
  one.bare = !/class=|var\(--|href=|<style|<script/.test(one.content);
  one.fills =
      new Set([...parsed.querySelectorAll("g[data-series] path:last-child")].map(p => p.getAttribute("fill"))).size;
  delete one.content;
}
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
if (!document.getElementById("problem").hidden)
  wrong("the report itself says: " + document.getElementById("problem").textContent);
if (document.documentElement.dataset.drawn !== "true") wrong("the page was not drawn to its end");
if (document.documentElement.scrollWidth > innerWidth)
  wrong(`the page is wider than the window: ${document.documentElement.scrollWidth}`);
for (const e of document.querySelectorAll("body *")) {
  // Nothing but the content of a scrolling box lies beyond the window's right edge.
  if (e.closest(".scroll, #tip, #probe, details:not([open]), svg") || !e.getClientRects().length) continue;
  if (e.getBoundingClientRect().right > innerWidth + 0.5)
    wrong(`<${e.tagName.toLowerCase()} class="${e.className}"> reaches beyond the window`);
}
// The names that stay in sight while a table scrolls leave place for what they are the names of.
for (const cell of document.querySelectorAll("table.numbers:not(.plain) td:first-child"))
  if (cell.getBoundingClientRect().width > Math.max(innerWidth * 0.55, 60))
    wrong(`"${cell.textContent.slice(0, 40)}" takes ${cell.getBoundingClientRect().width} of the window`);
// On paper there is nothing to click, and no hint that one could.
const rules = [...document.styleSheets[0].cssRules].filter(r => r.media?.mediaText === "print");
if (rules.length === 0) wrong("no rules for print");
for (const rule of rules) rule.media.mediaText = "all";
// What a reader has chosen stays, in names and in selections.
const pressed = () => [...document.querySelectorAll("button[aria-pressed]")].map(b => b.getAttribute("aria-pressed")).join(),
      chosen = () => [...document.querySelectorAll("select")].map(box => box.selectedIndex).join();
for (const legend of document.querySelectorAll(".legend")) legend.querySelector("button[aria-pressed]").click();
const names = pressed(), selections = chosen();
dispatchEvent(new Event("beforeprint"));
if (pressed() !== names) wrong("printed: other names than the reader left");
if (chosen() !== selections) wrong("printed: not what the reader selected");
for (const e of document.querySelectorAll("select, button.save, nav, .screen"))
  if (e.getClientRects().length) wrong(`printed: <${e.tagName.toLowerCase()} class="${e.className}">`);
found.printed_runs = [...document.querySelectorAll("p.print")].map(e => e.innerText);
for (const chart of document.querySelectorAll("[data-chart]"))
  if (chart.viewBox.baseVal.width !== 680) wrong(`printed: a chart ${chart.viewBox.baseVal.width} wide`);
if (getComputedStyle(document.body).backgroundColor !== "rgb(255, 255, 255)") wrong("printed: the paper is not white");
if (found.headlines.join() !== [...document.querySelectorAll(".headlines li")].map(e => e.textContent).join())
  wrong("printed: other headlines");
for (const rule of rules) rule.media.mediaText = "print";
dispatchEvent(new Event("afterprint"));
found.title = document.querySelector("h1")?.textContent;
const out = document.createElement("pre");
out.id = "probe";
out.textContent = encodeURIComponent(JSON.stringify(found));
document.body.append(out);
parent.postMessage(out.textContent, "*");  // to the page that holds this one in a frame as narrow as a phone
