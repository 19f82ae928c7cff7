// The page itself, from top to bottom.

function heading(result, columns, problem) {
  const scenario = result.scenario || {}, expectations = list(result.expectations),
        failed = expectations.filter(e => e.ok !== true).length;
  const ok = result.ok === true && failed === 0;
  const facts = [
    scenario.file ? text(scenario.file) : null, result.seed !== undefined ? `seed ${text(result.seed)}` : null,
    result.version ? `GCCL ${text(result.version)}` : null, plural(list(result.runs).length, "run")
  ].filter(x => x);
  const checked = list(result.runs).filter(run => number(run.wrong) !== null),
        wrong = checked.filter(run => run.wrong > 0);
  if (wrong.length)
    problem(
        `${plural(wrong.length, "run")} left wrong elements: ` +
        wrong.slice(0, 5)
            .map(
                run => `${text(run.collective)} ${text(run.algorithm)} ${show.bytes(run.bytes)} (${
                    show.count(run.wrong)})`)
            .join(", ") +
        (wrong.length > 5 ? ", ..." : ""));
  if (checked.length && !wrong.length) facts.push(`every element right in ${plural(checked.length, "checked run")}`);
  const n = expectations.length;
  const held = n === 0 ? "ok" : n === 1 ? "the expectation holds" : `all ${n} expectations hold`;
  const broken = n === 1 ? "the expectation failed" : `${failed} of ${n} expectations failed`;
  const verdict = ok ? held : failed ? broken : "failed";
  return [
    h("div", {class: "title-row"}, h("h1", {}, text(scenario.name) || "GCCL report"),
      h("span", {class: "badge " + (ok ? "good" : "bad")}, verdict),
      list(result.runs).length ? h("button", {
        type: "button",
        class: "save",
        title: "Save all runs with all their fields",
        onclick: () => save((text(scenario.name) || "runs") + ".csv", "text/csv", csvOf(list(result.runs), columns))
      },
                                   "all runs as CSV") :
                                 null),
    scenario.description ? h("p", {}, text(scenario.description)) : null,
    h("p", {class: "facts"}, facts.join(" \u00b7 "))
  ];
}

function expectationTable(result) {
  const all = list(result.expectations);
  if (all.length === 0) return null;
  const rows = all.map(
      e =>
          [{cell: e.ok === true ? "holds" : "fails", by: e.ok === true ? 1 : 0, class: e.ok === true ? "yes" : "no"},
           {cell: text(e.text), by: text(e.text)}, {cell: text(e.found), by: text(e.found)},
           {cell: h("code", {}, text(e.pointer)), by: text(e.pointer)}]);
  return h(
      "section", {class: "card", id: "expectations"}, h("h3", {}, "Expectations"),
      sortable(["", "expected", "found", "where in the scenario"], rows, "plain"));
}

function sectionCard(section, id, columns) {
  const first = section.first, card = h("section", {class: "card", id});
  section.hidden = section.hidden || new Set();
  const common = (key, word) => {
    const values = distinct(section.runs.map(run => run[key]));
    return values.length === 1 && values[0] !== undefined ? word(values[0]) : null;
  };
  const facts = [
    section.engines.join(" and ") + (section.engines.length > 1 ? " engines" : " engine"),
    common("ranks", n => plural(number(n) ?? 0, "rank")),
    common("groups", n => number(n) > 1 ? plural(n, "group") : null),
    section.columns.length === 1 || section.x === "ranks" ? common("bytes", exactBytes) : null, common("dtype", text),
    first.in_place === true ? "in place" : null, number(first.root) ? `root ${first.root}` : null,
    common("chunks", n => plural(number(n) ?? 0, "chunk")), common("channels", n => plural(number(n) ?? 0, "channel")),
    common("window", n => `window ${text(n)}`), common("protocol", name => `protocol ${text(name)}`)
  ].filter(x => x);
  const by = section.columns.length < 2 ? "" : section.x === "bytes" ? " against size" : " against ranks";
  const time = chart(
      section, {
        title: "Time" + by,
        unit: "simulated time (log)",
        of: timeOf,
        show: show.time,
        better: 1,
        mark: run => number(run.predicted_us)
      },
      tooltip);
  const bandwidth = chart(
      section, {
        title: "Bus bandwidth" + by,
        unit: "bus bandwidth",
        linear: true,
        of: run => number(run.busbw_GBps),
        show: show.rate,
        better: -1,
        optional: true
      },
      tooltip);
  // Where curves lie close to each other only their ratio shows which one leads.
  const best = new Map();
  for (const c of section.columns)
    for (const same of groupBy(c.points, p => p.series.engine))
      best.set(`${c.x} ${text(same[0].run.engine)}`, same.length > 1 ? timeOf(same[0].run) : null);
  const ratio = run => {
    const least = best.get(`${number(run[section.x]) ?? 0} ${text(run.engine)}`);
    return least > 0 && timeOf(run) !== null ? run.time_us / least : null;
  };
  const relative = section.columns.length > 1 && section.series.length > 1 ?
      chart(
          section, {
            title: "Time relative to the fastest",
            unit: "time / least time, up to 4\u00d7",
            of: ratio,
            show: r => digits3(r) + "\u00d7",
            limit: 4,
            wide: true,
            optional: true
          },
          tooltip) :
      null;
  const charts = h("div", {class: "charts"}, time, bandwidth, relative), names = legend(section, charts);
  for (const g of charts.querySelectorAll("[data-series]"))
    if (section.hidden.has(g.dataset.series)) g.classList.add("off");
  card.append(h("h3", {}, sectionTitle(section)), h("p", {class: "facts"}, facts.join(" \u00b7 ")), names, charts);
  for (const part of [markKey(section), numbers(section, columns), utilisation(section), ...section.runs.map(faultStory)])
    if (part) card.append(part);
  return card;
}

// Of several engines each has a card of its own.
function sequenceTitle(runs, all) {
  const engines = distinct(all.filter(s => title(s[0]) === title(runs[0])).map(s => text(s[0].engine)));
  return title(runs[0]) + (engines.length > 1 ? ` (${text(runs[0].engine)} engine)` : "");
}

function sequenceCard(runs, name, id) {
  const place = h("div"), ranksOf = run => plural(number(run.ranks) ?? 0, "rank");
  const several = distinct(runs.map(ranksOf)).length > 1;
  const nameOf = run =>
      [text(run.label), text(run.algorithm), several ? ranksOf(run) : "", run.bytes ? show.bytes(run.bytes) : "",
       show.time(run.time_us)].filter(x => x).join(", ");
  const draw = i => {
    const run = runs[i];
    runs.chosen = i;
    const facts = [
      ranksOf(run), plural(list(run.operations).length, "operation"),
      completed(run) ? `${show.time(run.time_us)} in all` : `ended after ${show.time(run.time_us)}`,
      number(run.messages) !== null ? plural(run.messages, "message") : null
    ].filter(x => x);
    const parts = [
      runs.length > 1 ? h("p", {class: "print"}, `${nameOf(run)}: one of ${runs.length} runs`) : null,
      h("p", {class: "facts"}, facts.join(" \u00b7 ")), timeline(run), faultStory(run)
    ];
    place.replaceChildren(...parts.filter(x => x));
  };
  draw(runs.chosen ?? 0);
  return h(
      "section", {class: "card", id}, h("h3", {}, name), h("p", {class: "facts"}, `${text(runs[0].engine)} engine`),
      runs.length > 1 ? h("div", {class: "buttons"}, select("run", runs.map(nameOf), runs.chosen, draw)) : null, place);
}

function drawing(topology) {
  if (!topology) return null;
  // As an image: a drawing cannot run scripts or restyle the page.
  return h("details", {class: "card", open: true}, h("summary", {}, "Topology"), h("div", {class: "scroll"}, h("img", {
             class: "drawing",
             alt: `Topology of ${text(topology.cluster)}`,
             src: "data:image/svg+xml;charset=utf-8," + encodeURIComponent(topology.svg)
           })));
}

// One sentence for each collective and cluster: what to use, what it reaches, what limits it.
function headlines(found, several) {
  if (found.length === 0) return null;
  const item = f =>
      h("li", {}, h("b", {}, text(f.subject) + (several ? ` on ${text(f.cluster)}` : "") + ": "), text(f.headline));
  const most = 12, rest = found.slice(most);
  return h(
      "section", {class: "card headlines", id: "answers"}, h("h3", {}, "In short"),
      h("ul", {}, found.slice(0, most).map(item)),
      rest.length ? h("details", {}, h("summary", {}, `${rest.length} more`), h("ul", {}, rest.map(item))) : null);
}

function findings(found) {
  const items =
      found.flatMap(f => list(f.notes).map(note => h("li", {}, h("b", {}, text(f.subject) + ": "), text(note))));
  return items.length ? h("section", {class: "card findings"}, h("h3", {}, "Findings"), h("ul", {}, items)) : null;
}

// As one word of a shell.
const quoted = word => /^[\w\/.:=@%+,-]+$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'";

function method(result) {
  const runs = list(result.runs), engines = distinct(runs.map(run => text(run.engine)));
  const meaning = {
    model: "discrete events over the schedule's own steps: latency and bandwidth of each link, ports and cards " +
        "busy for as long as a message holds them",
    simgrid: "the same schedules over SimGrid's flow model: links are shared between the messages that cross them at " +
        "the same time",
    flow: "each link has a bandwidth over time, which the messages that cross it at the same time share fairly",
    protocol: "every frame of the library's fault protocol, over the links of its route, in virtual time",
    real: "processes of one machine, to which the faults were done; their times are divided by the stretch, and say " +
        "nothing of the cluster's links",
  };
  const scenario = result.scenario || {}, wall = runs.reduce((sum, run) => sum + (number(run.wall_s) ?? 0), 0),
        messages = runs.reduce((sum, run) => sum + (number(run.messages) ?? 0), 0);
  const planners = distinct(runs.map(run => text(run.planner || (list(run.operations)[0] || {}).planner)));
  const carriers = distinct(runs.map(run => text((run.faults || {}).carried_by))).filter(name => name);
  const real = carriers.length !== 1    ? "" :
      carriers[0] === "tcp in namespaces" ? " --namespaces" :
      carriers[0] === "shm"             ? " --transport shm" :
                                          "";
  const command = text(result.command) ||
      `gccl run ${quoted(text(scenario.file) || "SCENARIO.json")}${
                      engines.length === 1 ? ` --engine ${engines[0]}${real}` : ""}${
                      planners.length === 1 && planners[0] ? ` --planner ${planners[0]}` : ""}${
                      result.seed !== undefined ? ` --seed ${text(result.seed)}` : ""} --html REPORT.html`;
  const deciders = distinct(runs.flatMap(run => [run, ...list(run.operations)]).map(one => text(one.decided_by)));
  const environment = deciders.filter(name => name).join(", ");
  const items = [
    ["command", h("code", {}, command)],
    ...(environment ? [["environment", `${environment} chose for auto`]] : []),
    [
      "work",
      `${plural(runs.length, "run")}${messages ? `, ${plural(messages, "message")} simulated` : ""} in ${
          show.time(wall * 1e6)} of wall time`
    ],
    ...engines.filter(e => meaning[e]).map(e => [`${e} engine`, meaning[e]]),
    [
      "size",
      "as nccl-tests counts it: the vector for allreduce, broadcast, reduce and sendrecv; for the others the larger " +
          "of a rank's two buffers"
    ],
    ["algbw", "algorithm bandwidth: size / time, of repeated calls all sizes"],
    [
      "busbw",
      "bus bandwidth: algbw times 2(n-1)/n for allreduce; (n-1)/n for allgather(v), " +
          "reduce_scatter(v), alltoall(v), gather and " +
          "scatter; 1 for broadcast, reduce and sendrecv. Comparable with the speed of a link, " +
          "whatever the number of ranks n"
    ],
    ["predicted", "the algorithm's closed-form cost, without contention: what the planner (auto) compares"]
  ];
  return [
    h("h2", {}, "How this was made"),
    h("dl", {}, items.flatMap(([term, what]) => [h("dt", {}, term), h("dd", {}, what)]))
  ];
}

function page(data, problem) {
  tooltip.hide();
  const result = data.result && typeof data.result === "object" ? data.result : {}, runs = list(result.runs);
  const sections = layout.sections = layout.sections || sectionsOf(result), found = list(data.findings),
        columns = list(data.columns).map(text),
        sequences = layout.sequences = layout.sequences ||
      groupBy(runs.filter(isSequence), run => [run.cluster, run.engine, run.label, run.collective].map(text));
  const names = distinct([...list(result.clusters).map(c => text(c.name)), ...runs.map(run => text(run.cluster))]);
  const main = document.getElementById("page"), links = [];
  const top = document.getElementById("top");
  main.replaceChildren(...[headlines(found, names.length > 1), expectationTable(result)].filter(x => x));
  top.replaceChildren(...heading(result, columns, problem).filter(x => x));
  if (runs.length === 0) main.append(h("p", {class: "card"}, "The scenario has no runs."));
  names.forEach((name, c) => {
    const mine = sections.filter(s => text(s.first.cluster) === name),
          played = sequences.filter(s => text(s[0].cluster) === name);
    const cluster = list(result.clusters).find(one => text(one.name) === name) || {};
    const facts = [
      number(cluster.cards) !== null ? plural(cluster.cards, "card") : null,
      number(cluster.nodes) !== null ? plural(cluster.nodes, "node") : null, cluster.file ? text(cluster.file) : null
    ].filter(x => x);
    const line = [];
    main.append(h("h2", {id: `cluster-${c}`}, name || "Cluster"), h("p", {class: "facts"}, facts.join(" \u00b7 ")));
    const parts = [findings(found.filter(f => text(f.cluster) === name))];
    mine.forEach((section, i) => {
      const id = `cluster-${c}-${i}`;
      parts.push(sectionCard(section, id, columns));
      line.push(
          h("a", {href: "#" + id}, sectionTitle(section)));
    });
    played.forEach((group, i) => {
      const id = `cluster-${c}-s${i}`, name = sequenceTitle(group, played);
      parts.push(sequenceCard(group, name, id));
      line.push(h("a", {href: "#" + id}, name));
    });
    parts.push(drawing(list(data.topologies).find(t => text(t.cluster) === name)));
    main.append(...parts.filter(x => x));
    links.push(h("a", {href: `#cluster-${c}`}, h("b", {}, name || "Cluster")), h("span", {}, line));
  });
  if (sections.length + sequences.length > 1) top.append(h("nav", {"aria-label": "Contents"}, links));
  document.getElementById("method").replaceChildren(...method(result));
}

function problem(message) {
  const box = document.getElementById("problem");
  box.hidden = false;
  box.append(message + "\n");
}
// A page that could not be drawn in full says so.
addEventListener("error", event => problem(`This report is incomplete: ${event.message}`));
const kData = JSON.parse(document.getElementById("data").textContent);
const draw = () => page(kData, layout.drawn ? () => {} : problem);
draw();
layout.drawn = chartWidth(true);
addEventListener("resize", () => {
  if (layout.printing || Math.abs(chartWidth(true) - layout.drawn) < 24) return;
  layout.drawn = chartWidth(true);
  draw();
});
for (const [event, printing] of [["beforeprint", true], ["afterprint", false]])
  addEventListener(event, () => {
    layout.printing = printing;
    draw();
  });
document.documentElement.dataset.drawn = "true";
