// What is wrong now: a line each, with a command. The head says how much is wrong, and not what.
import {$, el, order, put} from "/page/words.js";
import {look} from "/page/workers.js";

// say writes the state. A screen reader reads it out when it changes, so it has no figure that always does.
export function say(grade, text) { put($("state"), text, grade); }

const FEW = 8; // lines, until all are asked for
let all = false, last = null;
const items = new Map(); // by title and how many had it before; an item stays as long as its warning does, so a text in it can be selected

async function copy(button, text) {
  try { await navigator.clipboard.writeText(text); } catch { // not over plain HTTP from elsewhere
    getSelection().selectAllChildren(button.previousSibling);
    if (!document.execCommand("copy")) return;
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = "copy"; }, 1500);
}

function item(w, key) {
  let i = items.get(key);
  if (!i) {
    i = {title: el("b"), text: el("span"), command: el("code"), copy: el("button", "link", "copy")};
    i.copy.type = "button";
    i.copy.onclick = () => copy(i.copy, i.command.textContent);
    i.command.title = "for a shell on the router's host";
    i.li = el("li", "", i.title, i.text, i.command, i.copy);
    i.li.tabIndex = 0;
    i.li.onkeydown = (e) => { if (e.key === "Enter" && e.target === i.li) i.li.classList.toggle("open"); };
    i.li.onclick = (e) => { if (!e.target.closest("code, button") && !getSelection().toString()) i.li.classList.toggle("open"); };
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
  i.li.classList.toggle("bad", w.grade === "bad");
  return i.li;
}

const plural = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;

function draw() {
  const now = new Map();
  for (const w of last) {
    let key = w.title;
    while (now.has(key)) key += " again";
    now.set(key, w);
  }
  for (const key of items.keys()) if (!now.has(key)) items.delete(key);
  order($("warnings"), [...now].slice(0, all ? last.length : FEW).map(([key, w]) => item(w, key)));
  $("strip").hidden = !last.length;
  $("all-warnings").hidden = last.length <= FEW;
  put($("all-warnings"), all ? `Show the first ${FEW} problems` : `Show all ${last.length} problems`);
}

$("all-warnings").onclick = () => { all = !all; draw(); };

// strip draws the warnings, and says in the head whether the router serves.
export function strip(o) {
  last = o.warnings || [];
  draw();
  const serves = o.ready && o.pools.some((p) => !p.why_not || p.panics);
  const state = o.draining ? "draining" : !serves ? "not ready" : last.length ? "" : "ready";
  const workers = o.pools.reduce((n, p) => n + p.workers_total, 0), up = o.pools.reduce((n, p) => n + p.up, 0);
  const problems = last.length ? plural(last.length, "problem") : "";
  document.title = last.length ? `(${last.length}) warmpath` : "warmpath";
  say((state && state !== "ready") || last.some((w) => w.grade === "bad") ? "bad" : last.length ? "warn" : "good",
    [state, problems, `${up} of ${workers} workers up`].filter(Boolean).join(" · "));
}
