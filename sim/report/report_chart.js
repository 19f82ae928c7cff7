// Charts as SVG: log-log lines over several x, bars where there is one.

function svg(tag, attributes, ...children) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
  e.append(...children);
  return e;
}
const px = v => v.toFixed(1);

// Seven colours and eight markers: prime to each other, so 56 series differ in one or the other.
const kColours = 7;
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
const kMarkers = [
  polygon(24, 0), polygon(4, 0.125).map(p => p.map(v => v * 1.15)), polygon(3, 0).map(p => p.map(v => v * 1.3)),
  polygon(4, 0).map(p => p.map(v => v * 1.2)), polygon(3, 0.5).map(p => p.map(v => v * 1.3)), cross(0),
  cross(Math.PI / 4), polygon(6, 0).map(p => p.map(v => v * 1.1))
];
function marker(index, x, y, r) {
  return "M" + kMarkers[index % kMarkers.length].map(([dx, dy]) => `${px(x + dx * r)} ${px(y + dy * r)}`).join("L") +
      "Z";
}
function swatch(index) {
  return svg(
      "svg", {width: 26, height: 14, class: `series s${index % kColours}`, "aria-hidden": "true"},
      svg("path", {class: "wire" + (index >= kColours ? " dashed" : ""), d: "M1 7H25"}),
      svg("path", {class: "dots", d: marker(index, 13, 7, 4.2)}));
}

// A logarithmic axis from `from` to `to` pixels. Zero has no logarithm: when it occurs it gets a place of its own
// before the smallest positive value. `ticks`: values that may carry a label, ascending. `limit`: for ratios from 1 to
// there.
function logAxis(values, from, to, bytes, limit) {
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
    const octaves = (high - low) / Math.LN2, step = [1, 2, 5, 10, 20].find(s => octaves / s <= 8) || 40;
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

// measure: {title, of: run => number or null, show} and, where wanted, wide: the whole width; limit: the largest value
// the axis need reach, lines beyond it leave the chart; optional: no chart when no value is above 0; for bars also
// better: 1 when less is better, else -1, and mark: run => value of a tick on the bar. Returns a figure; its svg has
// data-chart and one g.series for each series that has at least one value; null when none has. Points without a value
// are left out.
function chart(section, measure, tip) {
  const shown = section.series.map(s => ({s, points: s.points.filter(p => measure.of(p.run) !== null)}))
                    .filter(x => x.points.length);
  const positive = shown.some(x => x.points.some(p => measure.of(p.run) > 0));
  if (shown.length === 0 || (measure.optional && !positive)) return null;
  const figure = document.createElement("figure"), heading = document.createElement("h4");
  heading.textContent = measure.title;
  if (measure.wide) figure.className = "wide";
  figure.append(
      heading, section.columns.length > 1 ? lines(section, shown, measure, tip) : bars(section, shown, measure, tip));
  return figure;
}

function group(one) { return svg("g", {class: `series s${one.index % kColours}`, "data-series": one.name}); }

function lines(section, shown, measure, tip) {
  const width = measure.wide ? 1226 : 600, height = measure.wide ? 330 : 370, left = 66, right = 12, top = 8,
        bottom = 44;
  const root = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    "data-chart": measure.title,
    role: "img",
    "aria-label": `${measure.title}, ${sectionTitle(section)}`
  });
  const x = logAxis(section.columns.map(c => c.x), left, width - right, true);
  const y = logAxis(
      shown.flatMap(o => o.points.map(p => Math.min(measure.of(p.run), measure.limit || Infinity))), height - bottom,
      top, false, measure.limit);
  for (const v of y.ticks) {
    root.append(
        svg("line", {class: "grid", x1: left, x2: width - right, y1: px(y.at(v)), y2: px(y.at(v))}),
        svg("text", {x: left - 7, y: px(y.at(v) + 4), "text-anchor": "end"}, measure.show(v)));
  }
  // With few points each x is named, else round ones.
  const xs = section.columns.map(c => c.x);
  for (const v of xs.length <= 6 ? xs : x.ticks) {
    root.append(
        svg("line", {class: "grid", x1: px(x.at(v)), x2: px(x.at(v)), y1: top, y2: height - bottom}),
        svg("text", {x: px(x.at(v)), y: height - bottom + 17, "text-anchor": "middle"}, section.showX(v)));
  }
  root.append(
      svg("path", {class: "axis", fill: "none", d: `M${left} ${top}V${height - bottom}H${width - right}`}),
      svg("text", {x: px((left + width - right) / 2), y: height - 5, "text-anchor": "middle"},
          section.x === "bytes" ? "message size" : "ranks"));
  const cursor = svg("line", {class: "cross", y1: top, y2: height - bottom, visibility: "hidden"});
  root.append(cursor);
  const plot =
      svg("svg",
          {class: "plot", x: 0, y: 0, width, height: height - bottom, overflow: measure.limit ? "hidden" : "visible"});
  root.append(plot);
  for (const {s, points} of shown) {
    const g = group(s), at = points.map(p => [x.at(p.x), y.at(measure.of(p.run)), p]);
    for (const [cx, cy, p] of at) {
      if (p.fastest) g.append(svg("circle", {class: "halo", cx: px(cx), cy: px(cy), r: 8}));
    }
    g.append(
        svg("path", {
          class: "wire" + (s.index >= kColours ? " dashed" : ""),
          d: "M" + at.map(([cx, cy]) => `${px(cx)} ${px(cy)}`).join("L")
        }),
        svg("path", {class: "dots", d: at.map(([cx, cy]) => marker(s.index, cx, cy, 3.6)).join("")}));
    for (const [cx, cy, p] of at) {
      if (p.chosen) g.append(svg("circle", {class: "ring", cx: px(cx), cy: px(cy), r: 6.5}));
    }
    plot.append(g);
  }
  const hit = svg("rect", {class: "hit", x: left, y: top, width: width - left - right, height: height - top - bottom});
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
  const cut = name => name.length > 28 ? name.slice(0, 27) + "\u2026" : name;
  const row = 25, width = 600, left = 28 + 8.3 * Math.max(...shown.map(o => cut(o.s.name).length), 8), right = 78,
        top = 4, height = top + row * Math.max(shown.length, 1) + 6;
  const root = svg("svg", {
    class: "chart",
    viewBox: `0 0 ${width} ${height}`,
    "data-chart": measure.title,
    role: "img",
    "aria-label": `${measure.title}, ${sectionTitle(section)}`
  });
  const values =
      shown.flatMap(o => o.points.map(p => Math.max(measure.of(p.run), measure.mark ? measure.mark(p.run) ?? 0 : 0)));
  const most = Math.max(...values, 0), at = v => left + (most > 0 ? v / most : 0) * (width - left - right);
  root.append(svg("path", {class: "axis", d: `M${px(left)} ${top}V${height}`}));
  const order = [...shown].sort((a, b) => measure.better * (measure.of(a.points[0].run) - measure.of(b.points[0].run)));
  order.forEach(({s, points: [p]}, i) => {
    const y = top + i * row, g = group(s), value = measure.of(p.run), mark = measure.mark ? measure.mark(p.run) : null;
    const end = Math.max(at(value), mark === null ? 0 : at(mark));
    g.append(
        svg("title", {}, s.name),
        svg("text",
            {class: "name", x: px(left - 24), y: y + 17, "text-anchor": "end", "font-weight": p.fastest ? 700 : 400},
            cut(s.name)),
        svg("path", {class: "dots", d: marker(s.index, left - 12, y + 12.5, 4)}),
        svg("rect",
            {class: "bar", x: px(left), y: y + 4, height: row - 8, width: px(Math.max(at(value) - left, 0)), rx: 2}));
    if (mark !== null) g.append(svg("path", {class: "predicted", d: `M${px(at(mark))} ${y + 2}V${y + row - 2}`}));
    g.append(
        svg("text", {class: "value", x: px(end + 6), y: y + 17, "font-weight": p.fastest ? 700 : 400},
            measure.show(value)));
    if (p.chosen) g.append(svg("circle", {class: "ring", cx: px(left - 12), cy: y + 12.5, r: 7}));
    const hit = svg("rect", {class: "hit", x: 0, y, width, height: row});
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
