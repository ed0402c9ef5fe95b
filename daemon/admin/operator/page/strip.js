// What is wrong now, in the head and in a strip below it, each with a command.
import {$, el, order, put} from "/page/words.js";
import {look} from "/page/workers.js";

// say writes the state. A screen reader reads it out when it changes, so it has no figure that always does.
export function say(grade, text) { put($("state"), text, grade); }

const items = new Map(); // by title and how many had it before; an item stays as long as its warning does, so a text in it can be selected

function item(w, key) {
  let i = items.get(key);
  if (!i) {
    i = {title: el("b"), text: el("span"), command: el("code")};
    i.li = el("li", "", i.title, i.text, i.command);
    if (w.worker) {
      const show = el("button", "link", "show");
      show.type = "button";
      show.setAttribute("aria-label", `Show ${w.worker} of ${w.pool}`);
      show.onclick = () => look(w.pool, w.worker);
      i.title.after(show);
    }
    items.set(key, i);
  }
  put(i.title, w.title);
  put(i.text, w.text);
  put(i.command, w.command);
  if (i.li.className !== w.grade) i.li.className = w.grade;
  return i.li;
}

const NAMED = 8; // warnings that the head names

// strip draws the warnings, and says in the head whether the router serves.
export function strip(o) {
  const all = o.warnings || [];
  const now = new Map();
  for (const w of all) {
    let key = w.title;
    while (now.has(key)) key += " again";
    now.set(key, w);
  }
  for (const key of items.keys()) if (!now.has(key)) items.delete(key);
  order($("warnings"), [...now].map(([key, w]) => item(w, key)));
  $("strip").hidden = !all.length;
  const serves = o.ready && o.pools.some((p) => !p.why_not || p.panics);
  const state = o.draining ? "draining" : !serves ? "not ready" : all.length ? "" : "ready";
  const workers = o.pools.reduce((n, p) => n + p.workers.length, 0), up = o.pools.reduce((n, p) => n + p.up, 0);
  const more = all.length > NAMED ? `${all.length - NAMED} more` : "";
  say((state && state !== "ready") || all.some((w) => w.grade === "bad") ? "bad" : all.length ? "warn" : "good",
    [state, ...all.slice(0, NAMED).map((w) => w.title), more, `${up} of ${workers} workers up`].filter(Boolean).join(" · "));
}
