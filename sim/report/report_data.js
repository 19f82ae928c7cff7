"use strict";
// From a result to what the page shows: units, sections (one group of charts each). No document in here.

const number = x => typeof x === "number" && isFinite(x) ? x : null;
const list = x => Array.isArray(x) ? x : [];
const text = x => x === null || x === undefined ? "" : String(x);
const distinct = items => [...new Set(items)];

function digits3(x) {
  const a = Math.abs(x);
  if (a >= 1e15) return x.toExponential(2);
  if (a >= 100) return x.toFixed(0);
  return String(Number(a >= 10 ? x.toFixed(1) : a >= 1 ? x.toFixed(2) : x.toPrecision(3)));
}
// The value in the largest unit that leaves at least 1 (after rounding to three digits).
function scaled(x, units) {
  let unit = units[0];
  for (const u of units)
    if (Math.abs(x) >= u[0] * 0.9995) unit = u;
  return digits3(x / unit[0]) + " " + unit[1];
}
const kBytes = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].map((name, i) => [1024 ** i, name]);
const kTimes = [[1e-3, "ns"], [1, "\u00b5s"], [1e3, "ms"], [1e6, "s"]];
const kRates = [[1e-6, "kB/s"], [1e-3, "MB/s"], [1, "GB/s"], [1e3, "TB/s"]];
const show = {
  bytes: b => number(b) === null ? "\u2013" : scaled(b, kBytes),
  time: us => number(us) === null ? "\u2013" :
      us === 0                    ? "0 \u00b5s" :
                                    scaled(us, kTimes),
  rate: GBps => number(GBps) === null ? "\u2013" :
      GBps === 0                      ? "0 GB/s" :
                                        scaled(GBps, kRates),
  percent: p =>
      number(p) === null ? "\u2013" : (p > 0 && p < 0.05 ? "<0.1" : p.toFixed(p >= 99.95 || p === 0 ? 0 : 1)) + " %",
  count: n => number(n) === null ? "\u2013" : n.toLocaleString("en-US"),
};
// Sizes that rounding would hide are given exactly as well.
function exactBytes(b) {
  const short = show.bytes(b), [x, unit] = short.split(" ");
  const factor = kBytes.find(u => u[1] === unit);
  return factor && Number(x) * factor[0] !== b ? `${short} (${show.count(b)} B)` : short;
}
function plural(n, word) {
  return `${show.count(n)} ${word}${n === 1 ? "" : "s"}`;
}

function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    const k = JSON.stringify(key(item));
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k).push(item);
  }
  return [...groups.values()];
}

// Of a run that did not complete there is no time to compare.
const completed = run => !(run.faults && run.faults.completed === false);
const timeOf = run => completed(run) ? number(run.time_us) : null;

const isSequence = run => run.collective === "sequence" || list(run.operations).length > 0;

// Chunks, channels, the window or the protocol as the run states it; what the planner decided distinguishes no runs.
const kDecided = ["chunks", "channels", "window", "protocol"];
const stated = (run, part) =>
    kDecided.includes(part) && (part === "protocol" ? run.protocol_planned !== false : run.planned === true) ?
    undefined :
    run[part];

// Runs of one series have one x each. A series is an algorithm on one engine; where stated chunks, channels, windows,
// protocols or planners differ between the runs they are part of its name, and so is whatever else distinguishes runs at
// the same x. Runs that nothing distinguishes, not even the time, are one point. base: the name without the engine,
// which has the colour and the marker.
function seriesOf(runs, x) {
  const names = new Map(), engines = distinct(runs.map(run => text(run.engine)));
  const varies = part => distinct(runs.map(run => stated(run, part))).length > 1;
  const dimensions = [...kDecided, "planner"].filter(varies);
  for (const same of groupBy(runs, run => [run.algorithm])) {
    const parts = [...dimensions], several = (runs, part) => distinct(runs.map(run => run[part])).length > 1;
    for (const part of ["count", "run", "index"]) {
      const clashes = groupBy(same, run => [run[x], run.engine, ...parts.map(p => stated(run, p))]);
      if (clashes.some(g => several(g, part) && (part === "count" || several(g, "time_us")))) parts.push(part);
    }
    for (const run of same) {
      const named = parts.filter(part => stated(run, part) !== undefined);
      const base = [text(run.algorithm), ...named.map(part => `${part} ${text(run[part])}`)].join(", ");
      const name = engines.length > 1 ? `${base} (${text(run.engine)})` : base;
      if (!names.has(name))
        names.set(name, {name, base, engine: engines.indexOf(text(run.engine)), wins: 0, points: []});
      const points = names.get(name).points, twin = points.find(p => p.x === run[x]);
      if (twin)
        twin.chosen = twin.chosen || run.auto === true;
      else
        points.push({x: number(run[x]) ?? 0, run, chosen: run.auto === true, fastest: false});
    }
  }
  const series = [...names.values()];
  for (const s of series) s.points.sort((a, b) => a.x - b.x);
  return series;
}

// The points at one x, fastest first, of those that take as long the one that the result marks; of each engine the
// fastest is marked.
function columnAt(series, at) {
  const points = [];
  for (const s of series)
    for (const p of s.points)
      if (p.x === at) points.push({series: s, point: p, run: p.run});
  const marked = p => p.run.fastest === true ? 0 : 1;
  points.sort((a, b) => (timeOf(a.run) ?? Infinity) - (timeOf(b.run) ?? Infinity) || marked(a) - marked(b));
  for (const same of groupBy(points, p => p.series.engine)) {
    if (same.length < 2 || timeOf(same[0].run) === null) continue;
    same[0].point.fastest = true;
    same[0].series.wins += 1;
  }
  return {x: at, points};
}

// How many ranks there are for each that takes part: with the ranks and the groups it says of how many ranks.
const partOfWorld = run => run.world_ranks / (run.ranks * (number(run.groups) ?? 1));

const asked = run =>
    [run.cluster, run.collective, run.label, run.dtype, run.op, run.root, run.in_place, run.groups, partOfWorld(run)]
        .map(text)
        .join();

// A section: the runs that may be compared with each other, of all engines. x is "bytes", or "ranks" where only the
// ranks vary.
function sectionsOf(result) {
  const sections = [];
  const plain = list(result.runs).filter(run => !isSequence(run));
  for (const family of groupBy(plain, run => [asked(run), text(run.like_run)])) {
    const scaling = distinct(family.map(run => run.bytes)).length === 1;
    for (const runs of scaling ? [family] : groupBy(family, run => [run.ranks])) {
      const x = distinct(runs.map(run => run.ranks)).length > 1 ? "ranks" : "bytes", series = seriesOf(runs, x);
      const at = distinct(series.flatMap(s => s.points.map(p => p.x))).sort((a, b) => a - b);
      sections.push({
        runs,
        x,
        series,
        first: runs[0],
        engines: distinct(runs.map(run => text(run.engine))),
        columns: at.map(v => columnAt(series, v)),
        showX: x === "bytes" ? show.bytes : show.count
      });
    }
  }
  // One algorithm keeps its colour and marker in all sections of its collective; those that are fastest most often have
  // the first ones.
  for (const same of groupBy(sections, s => [s.first.collective])) {
    const wins = new Map();
    for (const one of same.flatMap(s => s.series)) wins.set(one.base, (wins.get(one.base) || 0) + one.wins);
    const names = [...wins.keys()].sort((a, b) => wins.get(b) - wins.get(a));
    for (const one of same.flatMap(s => s.series)) one.index = names.indexOf(one.base);
  }
  for (const same of groupBy(sections, s => [s.first.cluster, title(s.first)])) addTitles(same);
  return sections;
}

const title = run => text(run.collective) + (run.label ? ` \u2013 ${text(run.label)}` : "");
// To sections of one cluster that would have the same title: with what tells them apart.
function addTitles(sections) {
  const parts = [
    [run => run.ranks, (run, x) => x === "bytes" && plural(number(run.ranks) ?? 0, "rank")],
    [run => run.groups, run => plural(number(run.groups) ?? 1, "group")],
    [partOfWorld, run => `of ${plural(number(run.world_ranks) ?? 0, "rank")}`],
    [run => run.dtype, run => text(run.dtype)], [run => run.op, run => text(run.op)],
    [run => run.root, run => `root ${text(run.root)}`], [run => run.in_place, run => run.in_place && "in place"]
  ].filter(([key]) => distinct(sections.map(s => key(s.first))).length > 1);
  for (const same of groupBy(sections, s => asked(s.first))) {
    const several = distinct(same.map(s => s.first.like_run)).length > 1;
    for (const section of same) {
      const first = section.first;
      const words = [...parts.map(([, say]) => say(first, section.x)), several && `run ${text(first.run)}`];
      const said = words.filter(word => word).join(", ");
      section.title = title(first) + (said ? ` (${said})` : "");
    }
  }
}
function sectionTitle(section) {
  return section.title;
}
