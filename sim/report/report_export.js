// Numbers as CSV and charts as SVG, made on the page itself: nothing is loaded or sent.

function save(name, type, content) {
  const url = URL.createObjectURL(new Blob([content], {type}));
  const link = h("a", {href: url, download: name.replace(/[^\w.+-]+/g, "-").slice(0, 120)});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// The columns are those of `gccl run --csv`.
function csvOf(runs, columns) {
  const cell = value => {
    const words = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(words) ? `"${words.replaceAll("\"", "\"\"")}"` : words;
  };
  const field = (run, key) => key === "completed" && run.faults ? run.faults.completed : run[key];
  return [columns, ...runs.map(run => columns.map(key => field(run, key)))]
      .map(row => row.map(cell).join(",") + "\n")
      .join("");
}

// A copy of a chart that needs no style sheet, with the names of its series below.
function svgText(root, section) {
  const kept = [
    "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-family", "font-size",
    "font-weight"
  ];
  const copy = root.cloneNode(true);
  const style = (from, to) => {
    const computed = getComputedStyle(from);
    for (const key of kept) to.setAttribute(key, computed.getPropertyValue(key));
    to.removeAttribute("class");
    to.removeAttribute("style");
    [...from.children].forEach((child, i) => style(child, to.children[i]));
  };
  // The chart may be out of sight or a series unmarked: the copy has what is shown now.
  style(root, copy);
  [...root.querySelectorAll("*")]
      .map((e, i) => [e, copy.querySelectorAll("*")[i]])
      .filter(([e]) => e.matches(".hit, .cross, .off"))
      .forEach(([, twin]) => twin.remove());
  const [, , width, height] = root.getAttribute("viewBox").split(" ").map(Number);
  const paper = getComputedStyle(document.documentElement).getPropertyValue("--card").trim() || "#ffffff",
        ink = getComputedStyle(document.body).color, row = 18;
  let x = 12, y = height + 14;
  const named = section.series.filter(s => !section.hidden.has(s.name));
  for (const one of named.sort((a, b) => a.index - b.index || a.engine - b.engine)) {
    const wide = 44 + one.name.length * 7;
    if (x > 12 && x + wide > width) x = 12, y += row;
    const sign = document.querySelector(`[data-series="${CSS.escape(one.name)}"]`), g = swatch(one);
    (sign ? sign.closest(".card") : document.body).append(g);  // its style comes from the page
    const twin = g.cloneNode(true);
    style(g, twin);
    g.remove();
    for (const [k, v] of Object.entries({x, y: y - 11})) twin.setAttribute(k, v);
    copy.append(
        twin, svg("text", {x: x + 32, y, "font-size": "12px", "font-family": "sans-serif", fill: ink}, one.name));
    x += wide;
  }
  const bottom = y + 10;
  copy.prepend(
      svg("title", {}, `${sectionTitle(section)}: ${root.dataset.chart}`),
      svg("rect", {width, height: bottom, fill: paper}));
  for (const [k, v] of Object.entries({viewBox: `0 0 ${width} ${bottom}`, width, height: bottom}))
    copy.setAttribute(k, v);
  const control = /[\x00-\x08\x0b\x0c\x0e-\x1f]/g;  // no XML character
  return new XMLSerializer().serializeToString(copy).replace(control, "\ufffd");
}

function saveSvg(root, section) {
  save(`${sectionTitle(section)} ${root.dataset.chart}.svg`, "image/svg+xml", svgText(root, section));
}
