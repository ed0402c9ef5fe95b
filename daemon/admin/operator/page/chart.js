// Lines over the last hour, drawn as SVG. No library: two polylines and their axes.

const NS = "http://www.w3.org/2000/svg";
const W = 480, H = 170, LEFT = 58, RIGHT = 8, TOP = 10, BOTTOM = 22;

function svg(name, attributes, text) {
  const e = document.createElementNS(NS, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

// points breaks a line where there is no value.
function path(values, x, y) {
  let d = "", pen = false;
  values.forEach((v, i) => {
    if (v === null) { pen = false; return; }
    d += `${pen ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    if (!pen && (i + 1 >= values.length || values[i + 1] === null)) d += "h1.5";
    pen = true;
  });
  return d;
}

// chart draws lines = [{name, values, style}] of equal length; a value is a number or null. words writes a value.
export function chart(title, lines, words, ceiling) {
  const n = lines[0].values.length;
  const most = Math.max(ceiling || 0, ...lines.flatMap((l) => l.values.filter((v) => v !== null)), 1e-9);
  const x = (i) => LEFT + (W - LEFT - RIGHT) * i / Math.max(1, n - 1);
  const y = (v) => TOP + (H - TOP - BOTTOM) * (1 - Math.min(v, most) / most);
  const last = (l) => { const v = l.values.findLast((v) => v !== null); return v === undefined ? "none" : words(v); };
  const says = lines.map((l) => `${l.name} ${last(l)}`).join(", ");
  const s = svg("svg", {viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}; last: ${says}`});
  for (const part of [0, .5, 1]) {
    const at = y(most * part);
    s.append(svg("line", {class: "axis", x1: LEFT, x2: W - RIGHT, y1: at, y2: at}),
      svg("text", {x: LEFT - 4, y: at + 5, "text-anchor": "end"}, words(most * part)));
  }
  s.append(svg("text", {x: LEFT, y: H - 4}, "1 h ago"), svg("text", {x: W - RIGHT, y: H - 4, "text-anchor": "end"}, "now"));
  for (const l of lines) s.append(svg("path", {class: l.style, d: path(l.values, x, y)}));
  const f = document.createElement("figure"), c = document.createElement("figcaption");
  c.append(title + ": ");
  lines.forEach((l, i) => {
    const k = document.createElement("span");
    k.className = "key-" + l.style;
    k.textContent = `${i ? " · " : ""}${l.name} ${last(l)}`;
    c.append(k);
  });
  f.append(c, s);
  return f;
}
