// Lines over time, drawn as SVG. doc.go says why no library does it.
import {clock, el, put} from "/page/words.js";

const NS = "http://www.w3.org/2000/svg";
const H = 112, LEFT = 46, RIGHT = 8, TOP = 12, BOTTOM = 16;

function svg(name, attributes, text) {
  const e = document.createElementNS(NS, name);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== undefined) e.textContent = text;
  return e;
}

// path writes a line; a value that is null or below 0 breaks it.
function path(values, x, y) {
  let d = "", pen = false;
  for (let i = 0; i < values.length; i++) {
    const v = values[i];
    if (v === null || v < 0) { pen = false; continue; }
    d += `${pen ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    if (!pen && !(values[i + 1] >= 0)) d += "h3m-3 -1h3m-3 2h3"; // a value alone is a dot
    pen = true;
  }
  return d;
}

const top = (line) => Math.max(line.ceiling || 0, 1e-9, ...line.values.filter((v) => v !== null));

// Chart is one figure. lines = [{name, words, style, values, ceiling}]: with words of its own, a line has an axis of its
// own, on the right. Values are numbers or null, one a span.
export class Chart {
  constructor(title) {
    this.title = title;
    this.caption = el("figcaption");
    this.svg = svg("svg", {role: "img"});
    this.figure = el("figure", "", this.caption, this.svg);
    this.svg.addEventListener("pointermove", (e) => this.point(e.clientX));
    this.svg.addEventListener("pointerleave", () => this.point(null));
  }

  draw(times, lines, marks, ago) {
    Object.assign(this, {times, lines});
    const width = Math.max(140, this.figure.clientWidth - 14), n = times.length;
    const right = lines.some((l) => l.right) ? 36 : RIGHT;
    const x = (i) => LEFT + (width - LEFT - right) * i / Math.max(1, n - 1);
    const shared = Math.max(...lines.filter((l) => !l.right).map(top));
    const y = (most) => (v) => TOP + (H - TOP - BOTTOM) * (1 - Math.min(v, most) / most);
    const parts = [];
    for (const part of [0, .5, 1]) {
      const at = y(1)(part), other = lines.find((l) => l.right);
      parts.push(svg("line", {class: "axis", x1: LEFT, x2: width - right, y1: at, y2: at}),
        svg("text", {x: LEFT - 4, y: at + 4, "text-anchor": "end"}, lines[0].words(shared * part)));
      if (other) parts.push(svg("text", {x: width - right + 3, y: at + 4}, other.words(top(other) * part)));
    }
    parts.push(svg("text", {x: LEFT, y: H - 3}, ago), svg("text", {x: width - right, y: H - 3, "text-anchor": "end"}, "now"));
    const from = new Date(times[0]), step = (new Date(times[n - 1]) - from) / (n - 1);
    for (const m of marks) {
      const at = x(Math.min(n - 1, Math.max(0, (new Date(m.at) - from) / step)));
      parts.push(svg("path", {class: "mark " + m.grade, d: `M${at} ${TOP}V${H - BOTTOM}`}), svg("text", {class: "sign " + m.grade,
        x: at, y: TOP - 2, "text-anchor": "middle"}, m.sign));
    }
    for (const l of lines) parts.push(svg("path", {class: l.style, d: path(l.values, x, y(l.right ? top(l) : shared))}));
    this.cursor = svg("path", {class: "cursor", d: ""});
    this.svg.setAttribute("viewBox", `0 0 ${width} ${H}`);
    this.svg.setAttribute("height", H);
    this.svg.replaceChildren(...parts, this.cursor);
    this.x = x;
    this.says(null);
    this.svg.setAttribute("aria-label", `${this.title}, last: ${this.caption.textContent}`);
  }

  // says writes the values of a span, or the last ones.
  says(i) {
    const value = (l) => {
      const v = i === null ? l.values.findLast((v) => v !== null) : l.values[i];
      return v === undefined || v === null ? "none" : l.words(v);
    };
    this.caption.replaceChildren(el("b", "", this.title), ...this.lines.map((l) => el("span", "key-" + l.style, `${l.name} ${value(l)}`)),
      i === null ? "" : el("span", "quiet", "at " + clock(this.times[i])));
  }

  // point shows the values under the pointer.
  point(clientX) {
    if (!this.x) return;
    if (clientX === null) {
      this.cursor.setAttribute("d", "");
      this.says(null);
      return;
    }
    const n = this.times.length, left = clientX - this.svg.getBoundingClientRect().left;
    const i = Math.round(Math.min(n - 1, Math.max(0, (left - this.x(0)) / (this.x(1) - this.x(0)))));
    this.cursor.setAttribute("d", `M${this.x(i)} ${TOP}V${H - BOTTOM}`);
    this.says(i);
  }
}

const CURVE = 54, CURVE_H = 14;

// Curve is a small line in a cell, beside a text.
export class Curve {
  constructor(cell) {
    this.text = el("span");
    this.line = svg("path", {class: "first"});
    const s = svg("svg", {class: "curve", viewBox: `0 0 ${CURVE} ${CURVE_H}`, width: CURVE, height: CURVE_H, "aria-hidden": "true"});
    s.append(this.line);
    cell.append(s, this.text);
  }

  say(text, cls) { put(this.text, text, cls); }

  // draw draws the last minutes of an hour's values, if there are some.
  draw(hour, minutes, ceiling) {
    if (hour === this.hour && minutes === this.minutes) return;
    Object.assign(this, {hour, minutes});
    const values = hour.slice(-hour.length * minutes / 60), most = Math.max(ceiling, ...values);
    if (values.filter((v) => v >= 0).length < 3) return;
    this.line.setAttribute("d", path(values, (i) => i * CURVE / (values.length - 1), (v) => 1 + (CURVE_H - 2) * (1 - v / most)));
  }
}
