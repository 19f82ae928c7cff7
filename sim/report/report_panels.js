// What stands around the charts: legend, tooltip, table of numbers, utilisation of links.

// Strings become text nodes, never markup.
function h(tag, attributes, ...children) {
  const e = document.createElement(tag);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (k.startsWith("on"))
      e.addEventListener(k.slice(2), v);
    else if (v !== null && v !== undefined && v !== false)
      e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.flat().filter(c => c !== null && c !== undefined));
  return e;
}

function select(label, names, chosen, changed) {
  const box =
      h("select", {"aria-label": label, onchange: () => changed(box.selectedIndex)},
        names.map(name => h("option", {}, name)));
  box.selectedIndex = chosen;
  return h("label", {}, label + " ", box);
}

const tooltip = {
  show(event, section, column, points, near) {
    const box = document.getElementById("tip"), best = engine => {
      const first = column.points.find(p => p.series.engine === engine);
      return first ? timeOf(first.run) : null;
    };
    const predicted = points.some(p => number(p.run.predicted_us) !== null);
    const behind = p => timeOf(p.run) !== null && best(p.series.engine) > 0 ?
        "+" + show.percent((p.run.time_us / best(p.series.engine) - 1) * 100) :
        "";
    const rows = points.map(
        p =>
            h("tr", {class: p === near ? "near" : null},
              h("td", {}, swatch(p.series), p.series.name, p.point.chosen ? " (auto)" : ""),
              h("td", {}, show.time(timeOf(p.run))), h("td", {}, p.point.fastest ? "fastest" : behind(p)),
              h("td", {}, show.rate(p.run.busbw_GBps)), predicted ? h("td", {}, show.time(p.run.predicted_us)) : null));
    const size = section.x === "bytes" ? exactBytes(column.x) : plural(column.x, "rank");
    box.replaceChildren(
        h("table", {},
          h("tr", {}, h("th", {}, size), h("th", {}, "time"), h("th", {}, ""), h("th", {}, "bus bandwidth"),
            predicted ? h("th", {}, "predicted") : null),
          rows));
    box.hidden = false;
    const left =
        event.clientX + 18 + box.offsetWidth > innerWidth ? event.clientX - 18 - box.offsetWidth : event.clientX + 18;
    box.style.left = Math.max(4, left) + "px";
    box.style.top = Math.max(4, Math.min(event.clientY + 14, innerHeight - box.offsetHeight - 4)) + "px";
  },
  hide() {
    document.getElementById("tip").hidden = true;
  },
};

function engineSign(engine) {
  return svg(
      "svg", {width: 26, height: 14, class: engineLook(engine).trim(), "aria-hidden": "true"},
      svg("path", {class: "wire plain-wire", d: "M1 7H25"}));
}

// Hovering a name picks its series out of all charts of the section; a click takes it away or brings it back. One name
// stands for an algorithm on all engines, and where there are several engines each has a name as well.
function legend(section, place) {
  const each = (match, act) => {
    for (const g of place.querySelectorAll("[data-series]"))
      if (match(section.series.find(s => s.name === g.dataset.series))) act(g);
  };
  const focus = match => {
    for (const c of place.querySelectorAll(".chart")) c.classList.toggle("focus", match !== null);
    each(() => true, g => g.classList.remove("hot"));
    if (match) each(match, g => g.classList.add("hot"));
  };
  const buttons = [];
  const draw = () => {
    each(() => true, g => g.classList.toggle("off", section.hidden.has(g.dataset.series)));
    for (const [match, button] of buttons)
      button.setAttribute("aria-pressed", String(section.series.some(s => match(s) && !section.hidden.has(s.name))));
  };
  const set = (match, on) => {
    for (const s of section.series.filter(match)) on ? section.hidden.delete(s.name) : section.hidden.add(s.name);
    draw();
  };
  const button = (match, ...content) => {
    const shown = () => section.series.some(s => match(s) && !section.hidden.has(s.name));
    const b =
        h("button", {
          type: "button",
          "aria-pressed": String(shown()),
          title: "Click to hide or show",
          onclick: () => {
            set(match, !shown());
            focus(shown() ? match : null);
          },
          onpointerenter: () => focus(shown() ? match : null),
          onpointerleave: () => focus(null),
          onfocus: () => focus(shown() ? match : null),
          onblur: () => focus(null),
        },
          content);
    buttons.push([match, b]);
    return b;
  };
  const bases = groupBy([...section.series].sort((a, b) => a.index - b.index || a.engine - b.engine), s => s.base);
  const names = bases.map(([first]) => button(s => s.base === first.base, swatch({...first, engine: 0}), first.base));
  const engines = section.engines.length < 2 ?
      [] :
      section.engines.map((engine, i) => button(s => s.engine === i, engineSign(i), engine + " engine"));
  const extra = section.series.length < 3 ? [] : [
    ["all", true], ["none", false]
  ].map(([name, on]) => h("button", {type: "button", class: "all", onclick: () => set(() => true, on)}, name));
  return h("div", {class: "legend"}, names, engines, extra);
}

function markKey(section) {
  const has = what => section.series.some(s => s.points.some(p => p[what]));
  const sign = (...parts) => svg("svg", {width: 20, height: 18, class: "top s0", "aria-hidden": "true"}, ...parts);
  const items = [];
  if (has("fastest") && section.columns.length > 1)
    items.push([
      sign(svg("circle", {class: "halo", cx: 10, cy: 9, r: 8}), svg("path", {class: "dots", d: marker(0, 10, 9, 3.6)})),
      "fastest"
    ]);
  if (has("fastest") && section.columns.length === 1) items.push([h("b", {}, "bold "), "fastest"]);
  if (has("chosen"))
    items.push([
      sign(
          svg("path", {class: "dots", d: marker(0, 10, 9, 3.6)}),
          svg("circle", {class: "ring", cx: 10, cy: 9, r: 6.5})),
      "chosen by auto"
    ]);
  if (section.columns.length === 1 && section.runs.some(run => number(run.predicted_us) !== null))
    items.push([sign(svg("path", {class: "predicted", d: "M10 2V16"})), "closed-form prediction"]);
  return items.length ? h("p", {class: "key"}, items.map(parts => h("span", {}, parts))) : null;
}

// A table whose columns sort by a click. head: names; rows: arrays of {cell, by}; the first click sorts ascending.
function sortable(head, rows, className) {
  const body = h("tbody");
  const draw = order =>
      body.replaceChildren(...order.map(row => h("tr", {}, row.map(c => h("td", {class: c.class || null}, c.cell)))));
  let sorted = -1, down = false;
  const less = (a, b) => typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b;
  const cells = head.map(
      (name, i) =>
          h("th", {scope: "col"},
            h("button", {
              type: "button",
              onclick: () => {
                down = sorted === i && !down;
                sorted = i;
                cells.forEach(
                    (c, k) => k === i ? c.setAttribute("aria-sort", down ? "descending" : "ascending") :
                                        c.removeAttribute("aria-sort"));
                const missing = row => row[i].by === null ? 1 : 0;  // stay last in both directions
                draw([...rows].sort(
                    (a, b) => missing(a) - missing(b) || (missing(a) ? 0 : (down ? -1 : 1) * less(a[i].by, b[i].by))));
              }
            },
              name)));
  draw(rows);
  return h(
      "div", {class: "scroll"},
      h("table", {class: "numbers " + (className || "")}, h("thead", {}, h("tr", {}, cells)), body));
}

const kMetrics = [
  {name: "time", of: timeOf, show: show.time},
  {name: "predicted time", of: run => number(run.predicted_us), show: show.time},
  {name: "algorithm bandwidth", of: run => number(run.algbw_GBps), show: show.rate},
  {name: "bus bandwidth", of: run => number(run.busbw_GBps), show: show.rate},
  {name: "messages", of: run => number(run.messages), show: show.count},
  {name: "bytes in messages", of: run => number(run.message_bytes), show: show.bytes},
  {name: "wall time of the run", of: run => number(run.wall_s), show: s => show.time(s === null ? null : s * 1e6)},
];

function numbers(section, columns) {
  const metrics = kMetrics.filter(m => section.runs.some(run => m.of(run) !== null));
  if (metrics.length === 0) return null;
  const place = h("div");
  const draw = metric => {
    section.metric = metric.name;
    const rows =
        section.series.map(s => [{cell: h("span", {class: "name"}, s.name), by: s.name}, ...section.columns.map(column => {
                             const p = s.points.find(q => q.x === column.x), value = p ? metric.of(p.run) : null;
                             return {
                               cell: p ? metric.show(value) : "",
                               by: value,
                               class: p ? [p.fastest ? "fastest" : "", p.chosen ? "chosen" : ""].join(" ").trim() : ""
                             };
                           })]);
    place.replaceChildren(sortable(
        [
          section.engines.length > 1 ? "algorithm (engine)" : "algorithm",
          ...section.columns.map(c => section.showX(c.x) + (section.x === "bytes" ? "" : c.x === 1 ? " rank" : " ranks"))
        ],
        rows));
  };
  const chosen = Math.max(0, metrics.findIndex(m => m.name === section.metric));
  draw(metrics[chosen]);
  return h(
      "div", {},
      h("div", {class: "buttons"}, h("h4", {}, "Numbers"),
        metrics.length > 1 ? select("show", metrics.map(m => m.name), chosen, i => draw(metrics[i])) : null,
        h("button", {
          type: "button",
          class: "save",
          title: "Save these runs with all their fields",
          onclick: () => save(
              `${sectionTitle(section)} ${text(section.first.cluster)}.csv`, "text/csv", csvOf(section.runs, columns))
        },
          "CSV"),
        h("span", {class: "facts"}, "fastest bold, chosen by auto framed",
          h("span", {class: "screen"}, "; a click on a heading sorts"))),
      place);
}

function utilisation(section) {
  const columns = section.columns.map(c => ({x: c.x, points: c.points.filter(p => list(p.run.tiers).length)}))
                      .filter(c => c.points.length);
  if (columns.length === 0) return null;
  const place = h("div", {class: "tiers"}), controls = h("div", {class: "buttons"});
  // At first the fastest at the largest size: that is where bandwidth could be the limit.
  let column = columns.find(c => c.x === section.used?.x) || columns[columns.length - 1],
      name = section.used?.name ?? column.points[0].series.name;
  const part = u => Math.min(Math.max(number(u) ?? 0, 0), 1) * 100 + "%";
  const draw = () => {
    const point = column.points.find(p => p.series.name === name) || column.points[0];
    name = point.series.name;
    section.used = {x: column.x, name};
    const xs = columns.map(c => section.x === "bytes" ? show.bytes(c.x) : plural(c.x, "rank"));
    controls.replaceChildren(
        h("h4", {}, "Link utilisation"), h("span", {class: "print"}, `${name}, ${xs[columns.indexOf(column)]}`),
        select(section.x === "bytes" ? "size" : "ranks", xs, columns.indexOf(column), i => {
          column = columns[i];
          draw();
        }), select("algorithm", column.points.map(p => p.series.name), column.points.indexOf(point), i => {
          name = column.points[i].series.name;
          draw();
        }), h("span", {class: "facts"}, "light: the tier's busiest link; solid: mean of its links"));
    const percent = u => number(u) === null ? "\u2013" : show.percent(u * 100);
    place.replaceChildren(...point.run.tiers.flatMap(
        t =>
            [h("span", {}, h("b", {}, text(t.tier)), " ",
               h("span", {class: "soft"}, plural(number(t.links) ?? 0, "link"))),
             h("div", {class: "track"}, h("div", {class: "busiest", style: `width:${part(t.busiest_utilisation)}`}),
               h("div", {class: "mean", style: `width:${part(t.mean_utilisation)}`})),
             h("span", {}, `${percent(t.busiest_utilisation)} busiest`,
               t.busiest_link ? h("span", {class: "soft"}, ` (${text(t.busiest_link)})`) : "",
               `, ${percent(t.mean_utilisation)} mean, ${show.bytes(t.bytes)}`)]));
  };
  draw();
  return h("div", {}, controls, place);
}
