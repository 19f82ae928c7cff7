// What a run does in the course of time: its operations, and the faults that struck it.

// Operations of one run over time; those that overlap stand in rows of their own, first come, first row.
function timeline(run) {
  const operations =
      list(run.operations)
          .filter(o => completed(run) || number(o.end_us) !== null)
          .map((o, i) => ({o, i, begin: number(o.begin_us) ?? 0, end: number(o.end_us) ?? number(o.begin_us) ?? 0}));
  operations.sort((a, b) => a.begin - b.begin || a.i - b.i);
  const rows = [];
  for (const one of operations) {
    one.row = rows.findIndex(end => end <= one.begin);
    if (one.row < 0) one.row = rows.push(0) - 1;
    rows[one.row] = Math.max(one.end, one.begin);
  }
  const width = chartWidth(true), row = 30, bottom = 26,
        events = list(run.faults && run.faults.events), top = events.length ? 20 : 0,
        height = top + rows.length * row + bottom,
        last = Math.max(...rows, completed(run) ? 0 : number(run.time_us) ?? 0) || 1;
  const at = us => us / last * (width - 50);
  const root = svg("svg", {
    class: "chart timeline",
    viewBox: `-4 0 ${width + 8} ${height}`,
    "data-timeline": operations.length,
    role: "img",
    "aria-label": "operations over time"
  });
  const rough = last / (width < 460 ? 3 : 8), power = 10 ** Math.floor(Math.log10(rough)),
        step = [1, 2, 5, 10].map(m => m * power).find(s => s >= rough);
  for (let i = 0; i * step <= last; ++i) {
    root.append(
        svg("line", {class: "grid", x1: px(at(i * step)), x2: px(at(i * step)), y1: top, y2: top + rows.length * row}),
        svg("text", {x: px(at(i * step)), y: height - 8, "text-anchor": i ? "middle" : "start"}, show.time(i * step)));
  }
  const kinds = distinct(operations.map(({o}) => text(o.collective) + " " + text(o.algorithm)));
  for (const {o, begin, end, row: r} of operations) {
    const kind = text(o.collective) + " " + text(o.algorithm),
          long = [kind, show.bytes(o.bytes), plural(number(o.ranks) ?? 0, "rank")].join(", ");
    const g = svg("g", {class: "series " + look({index: kinds.indexOf(kind), engine: 0})}),
          span = Math.max(at(end) - at(begin), 1.5);
    const label = [long, kind, text(o.collective)].find(t => t.length * 6.6 + 10 < span);
    g.append(
        svg("title", {}, `${long}: ${show.time(begin)} to ${show.time(end)}, took ${show.time(end - begin)}`),
        svg("rect", {class: "halo", x: px(at(begin)), y: top + r * row + 3, width: px(span), height: row - 6, rx: 3}),
        svg("rect", {class: "bar", x: px(at(begin)), y: top + r * row + 3, width: 3, height: row - 6}));
    if (label) g.append(svg("text", {class: "name", x: px(at(begin) + 8), y: top + r * row + 19}, label));
    root.append(g);
  }
  // Events that fall on nearly the same place share a line.
  const marks = groupBy(
      events.map((e, i) => ({i, e, x: at(number(e.at_us) ?? 0)})).filter(m => m.x <= at(last)),
      m => Math.round(m.x / 14));
  for (const same of marks) {
    const first = same[0], numbers = distinct([first.i + 1, same[same.length - 1].i + 1]).join("\u2013");
    root.append(
        svg("g", {class: "event"}, svg("title", {}, same.map(m => `${show.time(m.e.at_us)}: ${text(m.e.text)}`).join("\n")),
            svg("line", {x1: px(first.x), x2: px(first.x), y1: top - 4, y2: top + rows.length * row}),
            svg("text", {x: px(first.x), y: 12, "text-anchor": first.x < 8 ? "start" : "middle"}, numbers)));
  }
  return h("div", {class: rows.length > 12 ? "tall" : null}, root);
}

function faultFacts(faults) {
  const ranks = all => list(all).length ? `rank${list(all).length === 1 ? "" : "s"} ${list(all).join(", ")}` : null;
  const took = (word, us) => number(us) !== null ? `${word} ${show.time(us)}` : null;
  return [
    faults.completed === true ? "completed" : "not completed", `policy ${text(faults.policy)}`,
    number(faults.stretch) > 1 ? `real times, divided by ${show.count(faults.stretch)}` : null,
    number(faults.survivors) !== null ? `${plural(faults.survivors, "rank")} left` : null,
    ranks(faults.dead) ? `reported dead: ${ranks(faults.dead)}` : null,
    ranks(faults.false_alarms) ? `wrongly taken for failed: ${ranks(faults.false_alarms)}` : null,
    took("noticed within", faults.detection_us), took("at work again after", faults.recovery_us),
    number(faults.throughput_after_percent) !== null ?
        `throughput afterwards ${show.percent(faults.throughput_after_percent)} of before` :
        null,
    faults.lost || faults.doubled ? `${show.count(faults.lost)} operations lost, ${show.count(faults.doubled)} doubled` :
                                    null,
    ...[["repeated_frames", "repeated frame"], ["reconnects", "reconnection"], ["rerouted", "detour"]].map(
        ([key, word]) => number(faults[key]) ? plural(faults[key], word) : null)
  ].filter(x => x);
}

// The events of one run, numbered as on its timeline.
function faultStory(run) {
  const faults = run.faults;
  if (!faults || typeof faults !== "object") return null;
  const events = list(faults.events), kind = {fault_begins: "no", fault_ends: "yes", work: "yes", link_slow: "no", link_recovered: "yes", planned_around: "yes"};
  const rows = events.map(
      (e, i) =>
          [{cell: String(i + 1), by: i}, {cell: show.time(e.at_us), by: number(e.at_us)},
           {cell: text(e.text), by: text(e.text), class: kind[text(e.event)] || null}]);
  const never = list(faults.never_struck).map(i => JSON.stringify(list(faults.timeline)[i]));
  return h(
      "div", {class: "story"}, h("h4", {}, "Faults"), h("p", {class: "facts"}, faultFacts(faults).join(" \u00b7 ")),
      faults.hang ? h("p", {class: "no"}, text(faults.hang)) : null,
      list(faults.violations).map(v => h("p", {class: "no"}, text(v))),
      list(faults.differs).map(d => h("p", {class: "no"}, `Not as the simulation says: ${text(d)}`)),
      rows.length ? sortable(["", "at", "what happened"], rows, "plain") : null,
      never.length ? h("p", {class: "facts"}, `Never struck: ${never.join("; ")}`) : null);
}
