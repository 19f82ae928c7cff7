"use strict";
// From a result to what the page shows: units, sections (one chart pair each), findings. No document in here.

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
function plural(n, word) { return `${show.count(n)} ${word}${n === 1 ? "" : "s"}`; }

function groupBy(items, key) {
  const groups = new Map();
  for (const item of items) {
    const k = JSON.stringify(key(item));
    if (!groups.has(k)) groups.set(k, []);
    groups.get(k).push(item);
  }
  return [...groups.values()];
}

const isSequence = run => run.collective === "sequence" || list(run.operations).length > 0;

// Runs of one series have one x each. Where an algorithm was run more than once at the same x, whatever tells these
// runs apart becomes part of the series' name; runs that nothing tells apart are one point.
function seriesOf(runs, x) {
  const names = new Map();
  for (const same of groupBy(runs, run => [run.algorithm])) {
    const clash = groupBy(same, run => [run[x]]).filter(g => g.length > 1).flat();
    const parts = ["shares", "lanes", "window", "count"].filter(
        part => groupBy(clash, run => [run[x]]).some(g => distinct(g.map(run => run[part])).length > 1));
    for (const run of same) {
      const name = [text(run.algorithm), ...parts.map(part => `${part} ${text(run[part])}`)].join(", ");
      if (!names.has(name)) names.set(name, {name, algorithm: text(run.algorithm), points: []});
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

// A section: the runs that may be compared with each other. x is "bytes", or "ranks" where only the ranks vary.
function sectionsOf(result) {
  const sections = [];
  const plain = list(result.runs).filter(run => !isSequence(run));
  const key = run => [run.cluster, run.collective, run.engine, run.label, run.dtype, run.root, run.in_place].map(text);
  for (const family of groupBy(plain, key)) {
    const scaling = distinct(family.map(run => run.bytes)).length === 1;
    for (const runs of scaling ? [family] : groupBy(family, run => [run.ranks])) {
      const x = distinct(runs.map(run => run.ranks)).length > 1 ? "ranks" : "bytes";
      const section = {runs, x, first: runs[0], series: seriesOf(runs, x), columns: []};
      for (const at of distinct(section.series.flatMap(s => s.points.map(p => p.x))).sort((a, b) => a - b)) {
        const points = [];
        for (const s of section.series)
          for (const p of s.points)
            if (p.x === at) points.push({series: s, point: p, run: p.run});
        points.sort((a, b) => (number(a.run.time_us) ?? Infinity) - (number(b.run.time_us) ?? Infinity));
        if (points.length > 1 && number(points[0].run.time_us) !== null) points[0].point.fastest = true;
        section.columns.push({x: at, points});
      }
      sections.push(section);
    }
  }
  // One algorithm keeps its colour and marker in all sections of its collective.
  for (const same of groupBy(sections, s => [s.first.collective])) {
    const names = distinct(same.flatMap(s => s.series.map(one => one.name)));
    for (const section of same)
      for (const one of section.series) one.index = names.indexOf(one.name);
  }
  for (const section of sections) {
    section.showX = section.x === "bytes" ? show.bytes : show.count;
    section.choices =
        list(result.choices)
            .filter(
                c => ["cluster", "collective", "engine", "dtype"].every(
                         k => c[k] === undefined || text(c[k]) === text(section.first[k])) &&
                    section.runs.some(run => run.ranks === c.ranks && run.bytes === c.bytes && run.auto === true));
  }
  return sections;
}

// Which series is fastest where: [{name, from, to}] in the order of x. A lead below half a percent changes nothing, so
// that two equal algorithms do not alternate.
function leaders(section) {
  const spans = [];
  for (const column of section.columns) {
    const times = column.points.filter(p => number(p.run.time_us) !== null);
    if (times.length < 2) continue;
    const last = spans[spans.length - 1];
    const held = last && times.find(p => p.series.name === last.name);
    if (held && held.run.time_us <= times[0].run.time_us * 1.005)
      last.to = column.x;
    else
      spans.push({name: times[0].series.name, from: column.x, to: column.x});
  }
  return spans;
}

function leaderSentence(section) {
  const spans = leaders(section), at = section.showX, unit = section.x === "ranks" ? " ranks" : "";
  if (spans.length === 0) return "";
  if (spans.length === 1) {
    if (section.columns.length > 1) {
      const where = section.x === "bytes" ? "size" : "rank count";
      return `${spans[0].name} is the fastest of ${section.series.length} at every ${where}.`;
    }
    const [best, next] = section.columns[0].points, took = show.time(best.run.time_us);
    if (next.run.time_us <= best.run.time_us * 1.005)
      return `${best.series.name} and ${next.series.name} are the fastest of ${section.series.length} (${took}).`;
    const longer = best.run.time_us > 0 ?
        `; ${next.series.name} takes ${show.percent((next.run.time_us / best.run.time_us - 1) * 100)} longer` :
        "";
    return `${best.series.name} is the fastest of ${section.series.length} (${took})${longer}.`;
  }
  if (spans.length > 5) {
    const wins = groupBy(spans, s => [s.name]).sort((a, b) => b.length - a.length).slice(0, 3).map(g => g[0].name);
    return `The fastest algorithm changes ${spans.length - 1} times; most often it is ${wins.join(", ")}.`;
  }
  return spans
             .map(
                 (s, i) => i === 0 ? `${s.name} is fastest up to ${at(s.to)}${unit}` :
                     i + 1 < spans.length ? (s.from === s.to ? `${s.name} at ${at(s.from)}${unit}` :
                                                               `${s.name} from ${at(s.from)} to ${at(s.to)}${unit}`) :
                                            `${s.name} from ${at(s.from)}${unit}`)
             .join(", ") +
      ".";
}

function choiceSentence(section) {
  const judged = section.choices.filter(c => number(c.regret_percent) !== null);
  if (judged.length === 0 || section.series.length < 2) return "";
  const worst = judged.reduce((a, b) => b.regret_percent > a.regret_percent ? b : a);
  const mean = judged.reduce((sum, c) => sum + c.regret_percent, 0) / judged.length;
  const hits = judged.filter(c => c.regret_percent <= 0).length;
  if (hits === judged.length) return `auto chose the fastest every time (${plural(hits, "point")}).`;
  const where = section.x === "bytes" ? show.bytes(worst.bytes) : show.count(worst.ranks) + " ranks";
  return `auto chose the fastest at ${hits} of ${plural(judged.length, "point")}; its choice was ${
             show.percent(mean)} ` +
      `slower than the best on average and ${show.percent(worst.regret_percent)} at worst ` +
      `(${where}: ${text(worst.chosen)} instead of ${text(worst.fastest)}).`;
}

function sectionTitle(section) {
  return text(section.first.collective) + (section.first.label ? ` \u2013 ${text(section.first.label)}` : "");
}
