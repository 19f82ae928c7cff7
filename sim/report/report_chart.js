// Charts as SVG: lines over several x, bars where there is one.

function svg(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
}
const px = v => v.toFixed(1);

// Twelve colours and eleven markers: prime to each other, so 132 series differ in one or the other.
const kColours = 12;
const polygon = (n, turn) => Array.from({length: n}, (_, i) => {
  const a = (turn + i / n) * 2 * Math.PI;
  return [Math.sin(a), -Math.cos(a)];
});
const cross = turn => {
  const w = 0.34, corners = [
    [-w, -1], [w, -1], [w, -w], [1, -w], [1, w], [w, w], [w, 1], [-w, 1], [-w, w], [-1, w], [-1, -w], [-w, -w]
  ];
  return corners.map(
      ([x, y]) => [x * Math.cos(turn) - y * Math.sin(turn), x * Math.sin(turn) + y * Math.cos(turn)].map(
          v => v * 1.15));
};
const star = polygon(10, 0).map((p, i) => p.map(v => v * (i % 2 ? 0.62 : 1.45)));
const enlarged = (points, by) => points.map(p => p.map(v => v * by));
const kMarkers = [
  polygon(24, 0), enlarged(polygon(4, 0.125), 1.15), enlarged(polygon(3, 0), 1.3), enlarged(polygon(4, 0), 1.2),
  enlarged(polygon(3, 0.5), 1.3), cross(0), star, cross(Math.PI / 4), enlarged(polygon(3, 0.25), 1.3),
  [[-1.1, -1.1], [1.1, -1.1], [-1.1, 1.1], [1.1, 1.1]], enlarged(polygon(3, 0.75), 1.3)
];
function marker(index, x, y, r) {
  return "M" + kMarkers[index % kMarkers.length].map(([dx, dy]) => `${px(x + dx * r)} ${px(y + dy * r)}`).join("L") +
      "Z";
}
// Colour and marker are the algorithm's; lines of engines after the first are dashed, of each otherwise, and their
// markers hollow.
function engineLook(engine) {
  return engine ? ` other other${engine}` : "";
}
function look(one) {
  return `s${one.index % kColours}` + engineLook(one.engine);
}
function swatch(one) {
  return svg(
      "svg", {width: 26, height: 14, class: "series " + look(one), "aria-hidden": "true"},
      svg("path", {class: "wire", d: "M1 7H25"}), svg("path", {class: "dots", d: marker(one.index, 13, 7, 4.2)}));
}

// A logarithmic axis from `from` to `to` pixels. Zero has no logarithm: when it occurs it gets a place of its own
// before the smallest positive value. `ticks`: values that may carry a label, ascending, of sizes at most `most`.
// `limit`: for ratios from 1 to there.
function logAxis(values, from, to, {bytes, most, limit}) {
  const positive = values.filter(v => v > 0), zero = positive.length < values.length;
  let low = Math.log(positive.length ? Math.min(...positive) : 1),
      high = Math.log(positive.length ? Math.max(...positive) : 1);
  const margin = limit ? Math.log(1.07) :
      bytes            ? Math.max((high - low) * 0.02, Math.log(1.2)) :
                         Math.max((high - low) * 0.05, Math.log(1.25));
  low -= margin;
  high += margin;
  const start = zero ? from + (to - from) * 0.08 : from;
  const at = v => v > 0 ? start + (Math.log(v) - low) / (high - low) * (to - start) : from + (to - from) * 0.015;
  const ticks = [];
  if (bytes) {
    // Powers of two whose exponents are multiples of a divisor of ten, so that KiB, MiB and GiB are among them.
    const octaves = (high - low) / Math.LN2, step = [1, 2, 5, 10, 20].find(s => octaves / s <= most) || 40;
    for (let k = Math.ceil(low / Math.LN2 / step) * step; k * Math.LN2 <= high; k += step) ticks.push(2 ** k);
  } else {
    const decades = (high - low) / Math.LN10, every = Math.max(1, Math.ceil(decades / 9));
    const within = decades <= 1 ? [1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9] :
        decades <= 2.2          ? [1, 2, 5] :
        decades <= 3.5          ? [1, 3] :
                                  [1];
    for (let k = Math.floor(low / Math.LN10); k * Math.LN10 <= high; ++k) {
      if (k % every) continue;
      for (const m of within)
        if (Math.log(m * 10 ** k) >= low && Math.log(m * 10 ** k) <= high) ticks.push(m * 10 ** k);
    }
  }
  if (zero) ticks.unshift(0);
  if (limit)
    return {
      at,
      ticks: [1, 1.1, 1.2, 1.5, 2, 3, limit].filter(v => v <= Math.exp(high) && (v === 1 || v > 1.3 || high < 0.7))
    };
  return {at, ticks};
}

// From zero up, with about six ticks.
function linearAxis(values, from, to) {
  const most = Math.max(...values) * 1.04, power = 10 ** Math.floor(Math.log10(most / 6)),
        step = [1, 2, 2.5, 5, 10].map(m => m * power).find(s => most / s <= 7);
  const ticks = [];
  for (let i = 0; i * step <= most; ++i) ticks.push(i * step);
  return {at: v => from + v / most * (to - from), ticks};
}

// Charts are drawn at the size they are shown at, so that their text keeps its size on every screen.
const layout = {
  printing: false
};
function chartWidth(wide) {
  if (layout.printing) return 680;
  const window = document.documentElement.clientWidth, narrow = window <= 640;
  const inner = Math.min(window, 1280) - (narrow ? 50 : 94);
  return Math.max(260, !wide && inner >= 906 ? (inner - 26) / 2 : inner);
}

// measure: {title, unit: of the y axis, of: run => number or null, show} and, where wanted, wide: the whole width;
// linear: a y axis from zero; limit: the largest value the axis need reach, lines beyond it leave the chart; optional:
// no chart when no value is above 0; for bars also better: 1 when less is better, else -1, and mark: run => value of a
// tick on the bar. Returns a figure; its svg has data-chart, one g.series for each series that has at least one value,
// and above all of them one g.top for each fastest or chosen point; null when no series has a value. Points without a
// value are left out.
function chart(section, measure, tip) {
  const shown = section.series.map(s => ({s, points: s.points.filter(p => measure.of(p.run) !== null)}))
                    .filter(x => x.points.length);
  const positive = shown.some(x => x.points.some(p => measure.of(p.run) > 0));
  if (shown.length === 0 || (measure.optional && !positive)) return null;
  const figure = document.createElement("figure"), heading = document.createElement("h4");
  if (measure.wide) figure.className = "wide";
  const drawn = section.columns.length > 1 ? lines(section, shown, measure, tip) : bars(section, shown, measure, tip);
  const save =
      h("button", {type: "button", class: "save", title: "Save this chart", onclick: () => saveSvg(drawn, section)},
        "SVG");
  heading.append(measure.title, save);
  figure.append(heading, drawn);
  return figure;
}

function rootOf(section, measure, width, height) {
  return svg("svg", {
    class: "chart",
    viewBox: `0 0 ${px(width)} ${px(height)}`,
    style: `max-width:${px(width * 1.2)}px`,
    "data-chart": measure.title,
    role: "img",
    "aria-label": `${measure.title}, ${sectionTitle(section)}`
  });
}
function group(one, kind = "series") {
  return svg("g", {class: `${kind} ${look(one)}`, "data-series": one.name});
}

function lines(section, shown, measure, tip) {
  const width = chartWidth(measure.wide), narrow = width < 460,
        height = narrow ? 320 :
      measure.wide      ? 330 :
                          370,
        left = 80, right = 12, top = 8, bottom = 44;
  const root = rootOf(section, measure, width, height), axisOptions = {most: narrow ? 4 : 8};
  const x = logAxis(section.columns.map(c => c.x), left, width - right, {bytes: true, ...axisOptions});
  const values = shown.flatMap(o => o.points.map(p => Math.min(measure.of(p.run), measure.limit || Infinity)));
  const y = measure.linear ? linearAxis(values, height - bottom, top) :
                             logAxis(values, height - bottom, top, {limit: measure.limit});
  for (const v of y.ticks) {
    root.append(
        svg("line", {class: "grid", x1: left, x2: px(width - right), y1: px(y.at(v)), y2: px(y.at(v))}),
        svg("text", {x: left - 7, y: px(y.at(v) + 4), "text-anchor": "end"}, measure.show(v)));
  }
  // With few points each x is named, else round ones.
  const xs = section.columns.map(c => c.x);
  for (const v of xs.length <= (narrow ? 4 : 6) ? xs : x.ticks) {
    const name = section.showX(v), room = name.length * 3.6;  // half of what it takes at most
    root.append(
        svg("line", {class: "grid", x1: px(x.at(v)), x2: px(x.at(v)), y1: top, y2: height - bottom}),
        svg("text", {x: px(Math.min(x.at(v), width - room)), y: height - bottom + 17, "text-anchor": "middle"}, name));
  }
  const middle = px((top + height - bottom) / 2);
  root.append(
      svg("path", {class: "axis", fill: "none", d: `M${left} ${top}V${height - bottom}H${px(width - right)}`}),
      svg("text", {class: "axis-title", x: px((left + width - right) / 2), y: height - 5, "text-anchor": "middle"},
          section.x === "bytes" ? "message size" : "ranks"),
      svg("text",
          {class: "axis-title", x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})`},
          measure.unit));
  const cursor = svg("line", {class: "cross", y1: top, y2: height - bottom, visibility: "hidden"});
  const plot = svg("svg", {
    class: "plot",
    x: 0,
    y: 0,
    width: px(width),
    height: height - bottom,
    overflow: measure.limit ? "hidden" : "visible"
  });
  root.append(cursor, plot);
  // The algorithm that is fastest most often has index 0 and is drawn last.
  const below = [...shown].sort((a, b) => b.s.index - a.s.index || b.s.engine - a.s.engine), tops = [];
  for (const {s, points} of below) {
    const g = group(s), at = points.map(p => [x.at(p.x), y.at(measure.of(p.run)), p]);
    g.append(
        svg("path", {
          class: "wire" + (s.wins ? " winner" : ""),
          d: "M" + at.map(([cx, cy]) => `${px(cx)} ${px(cy)}`).join("L")
        }),
        svg("path", {class: "dots", d: at.map(([cx, cy]) => marker(s.index, cx, cy, 3.6)).join("")}));
    plot.append(g);
    for (const [cx, cy, p] of at) {
      if (!p.fastest && !p.chosen) continue;
      const above = group(s, "top");
      if (p.fastest)
        above.append(
            svg("circle", {class: "halo", cx: px(cx), cy: px(cy), r: 8}),
            svg("path", {class: "dots", d: marker(s.index, cx, cy, 4.6)}));
      if (p.chosen) above.append(svg("circle", {class: "ring", cx: px(cx), cy: px(cy), r: 6.5}));
      tops.push([p.fastest ? 1 : 0, above]);
    }
  }
  plot.append(...tops.sort((a, b) => a[0] - b[0]).map(one => one[1]));
  const hit =
      svg("rect", {class: "hit", x: left, y: top, width: px(width - left - right), height: height - top - bottom});
  hit.addEventListener("pointermove", event => {
    const box = root.getBoundingClientRect(), mx = (event.clientX - box.left) * width / box.width,
          my = (event.clientY - box.top) * height / box.height;
    const column = section.columns.reduce((a, b) => Math.abs(x.at(b.x) - mx) < Math.abs(x.at(a.x) - mx) ? b : a);
    const distance = p => measure.of(p.run) === null ? Infinity : Math.abs(y.at(measure.of(p.run)) - my);
    const visible = column.points.filter(p => !section.hidden.has(p.series.name));
    const near = visible.length ? visible.reduce((a, b) => distance(b) < distance(a) ? b : a) : null;
    cursor.setAttribute("x1", px(x.at(column.x)));
    cursor.setAttribute("x2", px(x.at(column.x)));
    cursor.setAttribute("visibility", "visible");
    tip.show(event, section, column, visible, near);
  });
  hit.addEventListener("pointerleave", () => {
    cursor.setAttribute("visibility", "hidden");
    tip.hide();
  });
  root.append(hit);
  return root;
}

function bars(section, shown, measure, tip) {
  // Where there is little room the names stand above their bars.
  const width = chartWidth(measure.wide), stacked = width < 460, longest = stacked ? 38 : 36;
  const cut = name => name.length > longest ? name.slice(0, longest - 1) + "\u2026" : name;
  const row = stacked ? 38 : 25, bar = stacked ? 18 : 0, right = 78, top = 4,
        left = stacked ? 8 : 28 + 7.4 * Math.max(...shown.map(o => cut(o.s.name).length), 8),
        height = top + row * Math.max(shown.length, 1) + 22;
  const root = rootOf(section, measure, width, height);
  const values =
      shown.flatMap(o => o.points.map(p => Math.max(measure.of(p.run), measure.mark ? measure.mark(p.run) ?? 0 : 0)));
  const most = Math.max(...values, 0), at = v => left + (most > 0 ? v / most : 0) * (width - left - right);
  root.append(
      svg("path", {class: "axis", d: `M${px(left)} ${top}V${height - 20}`}),
      svg("text", {class: "axis-title", x: px((left + width - right) / 2), y: height - 5, "text-anchor": "middle"},
          measure.unit.replace(" (log)", "")));
  const order = [...shown].sort((a, b) => measure.better * (measure.of(a.points[0].run) - measure.of(b.points[0].run)));
  order.forEach(({s, points: [p]}, i) => {
    const y = top + i * row, g = group(s), value = measure.of(p.run), mark = measure.mark ? measure.mark(p.run) : null;
    const end = Math.max(at(value), mark === null ? 0 : at(mark)), weight = p.fastest ? 700 : 400,
          mx = stacked ? left + 10 : left - 12, my = y + (stacked ? 10 : 12.5);
    g.append(
        svg("title", {}, s.name),
        svg("text", {
          class: "name",
          x: px(stacked ? left + 24 : left - 24),
          y: y + (stacked ? 14 : 17),
          "text-anchor": stacked ? "start" : "end",
          "font-weight": weight
        },
            cut(s.name)),
        svg("path", {class: "dots", d: marker(s.index, mx, my, 4)}), svg("rect", {
          class: "bar",
          x: px(left),
          y: y + bar + 4,
          height: row - bar - 8,
          width: px(Math.max(at(value) - left, 0)),
          rx: 2
        }));
    if (mark !== null) g.append(svg("path", {class: "predicted", d: `M${px(at(mark))} ${y + bar + 2}V${y + row - 2}`}));
    g.append(
        svg("text", {class: "value", x: px(end + 6), y: y + (row + bar) / 2 + 4.5, "font-weight": weight},
            measure.show(value)));
    if (p.chosen) g.append(svg("circle", {class: "ring", cx: px(mx), cy: my, r: 7}));
    const hit = svg("rect", {class: "hit", x: 0, y, width: px(width), height: row});
    hit.addEventListener("pointermove", event => {
      const [column] = section.columns, visible = column.points.filter(q => !section.hidden.has(q.series.name));
      tip.show(event, section, column, visible, visible.find(q => q.series === s));
    });
    hit.addEventListener("pointerleave", () => tip.hide());
    g.append(hit);
    root.append(g);
  });
  return root;
}
