// How things are written, and elements with text in them: a text never goes in as markup.

export const $ = (id) => document.getElementById(id);

export const el = (name, cls, ...inside) => {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  e.append(...inside.filter((x) => x !== null && x !== undefined));
  return e;
};

// put writes a text, and a class, only where they differ: an element that stays the same costs no layout.
export function put(e, text, cls) {
  if (e.said !== text) {
    e.said = text;
    e.textContent = text;
  }
  if (cls !== undefined && e.className !== cls) e.className = cls;
}

// order makes nodes the children of a parent. Those that stay in their place are not touched.
export function order(parent, nodes) {
  let at = parent.firstChild;
  for (const n of nodes) {
    if (n === at) at = at.nextSibling;
    else parent.insertBefore(n, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

export const ms = (s) => s >= 10 ? s.toFixed(0) + " s" : s >= 1 ? s.toFixed(2) + " s" : s >= .01 ? (s * 1e3).toFixed(0) + " ms" :
  s ? (s * 1e3).toFixed(1) + " ms" : "0";
export const percent = (x) => (100 * x).toFixed(0) + " %";
export const part = (of, all) => all ? percent(of / all) : "none";
export const count = (n) => n >= 1e9 ? (n / 1e9).toFixed(1) + " G" : n >= 1e6 ? (n / 1e6).toFixed(1) + " M" :
  n >= 1e4 ? (n / 1e3).toFixed(0) + " k" : String(Math.round(n * 10) / 10);
export const bytes = (n) => n >= 1 << 30 ? (n / (1 << 30)).toFixed(1) + " GiB" : n >= 1 << 20 ? (n / (1 << 20)).toFixed(1) + " MiB" :
  (n / 1024).toFixed(0) + " KiB";
export const clock = (at) => new Date(at).toLocaleTimeString([], {hour12: false});

// now is the router's time: the browser's clock may be another.
let ahead = 0;
export const isNow = (at) => { ahead = new Date(at) - Date.now(); };
export const now = () => Date.now() + ahead;

// named is a name of which the end stays in sight where there is no room for all of it: names differ at their ends.
const TAIL = 10;
export function named(e, name) {
  if (e.said === name) return;
  e.said = e.title = name;
  e.className = "name";
  e.replaceChildren(el("span", "", name.slice(0, -TAIL)), name.slice(-TAIL));
}

export function since(when) {
  const s = Math.max(0, (now() - new Date(when)) / 1000);
  return s < 90 ? s.toFixed(0) + " s" : s < 5400 ? (s / 60).toFixed(0) + " min" : s < 172800 ? (s / 3600).toFixed(1) + " h" :
    (s / 86400).toFixed(0) + " days";
}

export function table(head, rows, numbers = []) {
  const cls = (i) => numbers.includes(i) ? "n" : "";
  const t = el("table", "", el("thead", "", el("tr", "", ...head.map((h, i) => el("th", cls(i), h)))));
  t.append(el("tbody", "", ...rows.map((r) => el("tr", "", ...r.map((c, i) => el("td", cls(i), c))))));
  return el("div", "wide", t);
}

// titled is a table under a heading, and nothing without rows.
export function titled(title, note, head, rows, numbers) {
  return rows.length ? [el("h3", "", title), note ? el("p", "quiet", note) : null, table(head, rows, numbers)].filter(Boolean) : [];
}

export function notice(text) {
  $("notice").hidden = !text;
  $("notice").textContent = text || "";
}

// A click is lost if what it began on moves before the button is released. So nothing moves while a button or a finger is
// down, for up to five seconds.
let pressed = -Infinity;
const released = [];
export const held = () => performance.now() - pressed < 5000;
export const afterwards = (f) => released.push(f);
addEventListener("pointerdown", () => { pressed = performance.now(); }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => {
  pressed = -Infinity;
  for (const f of released) f();
}), true);

// sure asks, and resolves to whether the answer was yes.
export function sure(title, text) {
  $("sure-title").textContent = title;
  $("sure-text").textContent = text;
  $("sure").returnValue = "no";
  $("sure").showModal();
  return new Promise((done) => { $("sure").onclose = () => done($("sure").returnValue === "yes"); });
}
