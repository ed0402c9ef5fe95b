// The last decisions as they come, and the what-if box.
import {call, json} from "/page/api.js";
import {$, afterwards, clock, count, el, held, ms, named, now, order, put, table} from "/page/words.js";

const MOST = 100; // rows
const PACE = 400; // ms between two drawings
const kept = new Map(); // number -> decision
const rows = new Map(); // number -> {of, tr}; a row is made anew when its decision has changed
const open = new Set(); // numbers of rows that are unfolded
let paused = false;

function beside(c, best, first) {
  if (first) return "chosen";
  const more = c.cost - best;
  return Math.abs(more) < 5e-5 ? "the same" : (more > 0 ? "+" : "−") + ms(Math.abs(more));
}

function candidates(d) {
  const best = d.candidates?.[0]?.cost ?? 0;
  const t = table(["Worker", "Cost", "Queue", "Prefill", "Eviction", "In flight", "Blocks held", "Slowness", "Why not"],
    (d.candidates || []).map((c, i) => {
      if (c.skipped && (c.state !== "up" || !c.prefill)) return [c.worker, "", "", "", "", String(c.in_flight), "", "", c.skipped];
      const below = c.l1_blocks + c.l2_blocks ? ` + ${c.l1_blocks} + ${c.l2_blocks}` : "";
      return [c.worker, ms(c.cost), ms(c.wait), ms(c.prefill), ms(c.eviction), String(c.in_flight),
        d.prompt_blocks ? `${c.gpu_blocks}${below} of ${d.prompt_blocks}` : "no block", c.slowness.toFixed(2),
        c.skipped || beside(c, best, !i)];
    }), [1, 2, 3, 4, 5, 6, 7]);
  t.classList.add("candidates");
  return t;
}

// waiting says what a request waits for in the router.
const waiting = (d) => `waits for ${d.waits_for ? "its key's " + d.waits_for : "a worker with room"}`;

// age writes how long a request is under way.
const age = (r) => { if (r.of.open) put(r.age, ms(Math.max(0, (now() - new Date(r.of.at)) / 1e3)), "quiet"); };

function ending(d) {
  if (d.open) return el("span", d.waits ? "warn" : "quiet", d.waits ? "waits" : "under way");
  const bad = d.status >= 400 || d.end;
  return el("span", bad ? "bad" : "good", `${d.status}${d.end ? " " + d.end : ""}`);
}

// short is a cell of one line whose text may be longer than the cell.
function short(cls, text) {
  const td = el("td", cls, el("span", "", text));
  td.title = text;
  return td;
}

function makeRow(r) {
  const d = r.of, u = d.usage || {}, worker = el("span"), prompt = u.prompt_tokens ?? d.prompt_tokens;
  named(worker, (d.split?.prefiller ? d.split.prefiller + " → " : "") + (d.worker || "none"));
  r.age = el("span", "", d.open ? "" : ms(d.seconds));
  age(r);
  const tr = el("tr", "one",
    el("td", "", clock(d.at)), el("td", "c-key", d.key || ""), short("c-model", (d.alias ? d.alias + " → " : "") + (d.model || "none")),
    el("td", "c-worker", worker), short("c-why", d.waits ? waiting(d) : (d.worker || d.reason !== "none" ? d.reason || "" : "") + (d.retries ? `, after ${d.retries} more` : "")),
    el("td", "n c-prompt", prompt ? count(prompt) : ""),
    el("td", "n c-prompt", u.cached_tokens !== undefined ? count(u.cached_tokens) : d.believed_tokens ? `≈ ${count(d.believed_tokens)}` : ""),
    el("td", "n", d.ttft_ns ? ms(d.ttft_ns / 1e9) : ""), el("td", "n c-total", r.age), el("td", "c-end", ending(d)));
  tr.tabIndex = 0;
  tr.dataset.number = d.number;
  return tr;
}

setInterval(() => { if (!held()) rows.forEach(age); }, 1000);

function rowOf(d) {
  let r = rows.get(d.number);
  if (r?.of !== d) {
    r = {of: d, more: open.has(d.number) ? unfolded(d) : null};
    r.tr = makeRow(r);
    rows.set(d.number, r);
  }
  if (open.has(d.number)) r.more ??= unfolded(d);
  r.tr.setAttribute("aria-expanded", open.has(d.number));
  return open.has(d.number) ? [r.tr, r.more] : [r.tr];
}

function unfolded(d) {
  const td = el("td", "", el("p", "", el("span", "id", d.id), ` · ${d.method} ${d.path}${d.key ? " · key " + d.key : ""}` +
    ` · ${d.pool ? `pool ${d.pool}` : "no pool"}${d.strategy ? ` · by ${d.strategy}` : ""}` +
    `${d.fallback ? ` · fallback: ${d.fallback}` : ""}${d.session ? ` · session by ${d.session}` : ""}` +
    `${d.identity ? ` · session ${d.identity}${d.turn ? `, turn ${d.turn}` : ""}${d.named_by ? `, by ${d.named_by}` : ""}${d.parent ? `, begun by ${d.parent}` : ""}` : ""}` +
    ` · believed cached ${count(d.believed_tokens)} tokens`));
  if (d.waits) td.append(el("p", "warn", `${waiting(d)}, with priority ${d.priority}`));
  if (d.pair && !d.split?.named) td.append(el("p", "", `the strategy named ${d.pair} for the prompt`));
  if (d.split) td.append(el("p", d.split.prefiller ? "" : "warn", `prefill ${d.split.prefiller ? `at ${d.split.prefiller}` : "by no prefiller"}` +
    `${d.split.named ? ", which the strategy named" : ""}: ${d.split.result}${d.split.why ? ` (${d.split.why})` : ""} after ${ms(d.split.took_ns / 1e9)}`));
  for (const a of d.attempts || []) td.append(el("p", "warn", `tried${d.worker ? " before" : ""}: ${a.worker}: ${a.reason}`));
  if (d.left_out) td.append(el("p", "quiet", `${count(d.candidates.length + (d.more || 0))} of ` +
    `${count(d.candidates.length + (d.more || 0) + d.left_out)} workers were candidates: those that hold the prompt, and those with the least load`));
  td.append(d.candidates ? candidates(d) : el("p", "quiet", "No strategy was asked."));
  td.colSpan = 10;
  return el("tr", "more", td);
}

function fits(d) {
  const q = $("filter").value.trim().toLowerCase();
  return (!$("failed").checked || d.status >= 400 || (!d.open && d.end)) &&
    (!q || [d.id, d.model, d.alias, d.worker, d.split?.prefiller, d.key, d.pool, d.reason, d.identity, d.parent].some((x) => (x || "").toLowerCase().includes(q)));
}

let due = null, drawn = -Infinity;

// drawLog draws soon, and at most once in PACE: hundreds of decisions may come in a second.
function drawLog() {
  if (paused || held()) return;
  due ??= setTimeout(() => {
    due = null;
    if (!held()) drawNow();
  }, Math.max(0, drawn + PACE - performance.now()));
}

function drawNow() {
  drawn = performance.now();
  const body = $("log").tBodies[0], focus = document.activeElement?.dataset?.number;
  const all = [...kept.values()].sort((a, b) => b.number - a.number).filter(fits).slice(0, MOST);
  order(body, all.flatMap(rowOf));
  const shown = new Set(all.map((d) => d.number));
  for (const n of rows.keys()) if (!shown.has(n)) rows.delete(n);
  $("none").hidden = all.length > 0;
  $("log").classList.toggle("keyless", !all.some((d) => d.key));
  if (focus && document.activeElement === document.body) body.querySelector(`[data-number="${CSS.escape(focus)}"]`)?.focus({preventScroll: true});
}

function take(list) {
  for (const d of list || []) kept.set(d.number, d);
  for (const n of kept.keys()) { // the first that came
    if (kept.size <= 5 * MOST) break;
    kept.delete(n);
    open.delete(n);
  }
  drawLog();
}

function unfold(tr) {
  const n = Number(tr.dataset.number);
  if (!open.delete(n)) open.add(n);
  drawNow();
}

let stream = new AbortController();

// anew has the stream begin anew: after a silence it may be one of a connection that is no more.
export function anew() {
  stream.abort();
  stream = new AbortController();
}

export async function follow() {
  for (let wait = 500; ; wait = Math.min(10000, 2 * wait)) {
    try {
      const r = await call("/api/v1/decisions?limit=100", {headers: {Accept: "text/event-stream"}, signal: stream.signal});
      if (!r.ok) throw new Error((await r.json()).error);
      $("live").textContent = "live";
      wait = 500;
      kept.clear(); // the router may be another process, which numbers from 1; it sends its last decisions first
      rows.clear();
      open.clear();
      const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const {done, value} = await reader.read();
        if (done) break;
        text += value;
        const events = text.split("\n\n");
        text = events.pop();
        for (const e of events) {
          const data = e.split("\n").find((l) => l.startsWith("data: "));
          if (!data) continue;
          const told = JSON.parse(data.slice(6));
          $("live").textContent = told.left ? `live; ${told.left} more came than are shown` : "live";
          take(told.decisions);
        }
      }
    } catch (e) { $("live").textContent = "not connected: " + e.message; }
    await new Promise((done) => setTimeout(done, wait));
  }
}

async function ask(event) {
  event.preventDefault();
  const answer = $("answer");
  let body;
  try { body = JSON.parse($("body").value); } catch (e) {
    answer.replaceChildren(el("p", "bad", "This is no JSON: " + e.message));
    return;
  }
  answer.replaceChildren(el("p", "quiet", "asking"));
  try {
    const a = await json("/api/v1/whatif", {method: "POST", headers: {"Content-Type": "application/json"}, patience: 20000,
      body: JSON.stringify({body, path: $("path").value, key: $("key").value, session: $("session").value})});
    const parts = [];
    if (a.why) parts.push(el("p", "bad", a.why));
    (a.decisions || []).forEach((d, i) => {
      const refused = !d.strategy && !d.worker; // before any strategy: so are all of them, for one reason
      if (refused && i) return;
      const skipped = d.worker ? `${d.worker}: ${d.reason || d.fallback || "no reason given"}` : d.reason || "nobody";
      parts.push(el("h3", "", refused ? "No strategy was asked" :
        `${d.strategy || "no strategy"}${i ? "" : ", which serves"}: ${skipped}`), candidates(d));
    });
    for (const f of a.failed || []) parts.push(el("p", "warn", f));
    answer.replaceChildren(...parts);
  } catch (e) { answer.replaceChildren(el("p", "bad", e.message)); }
}

$("ask").onsubmit = ask;
$("filter").oninput = drawLog;
$("failed").onchange = drawLog;
$("pause").onclick = () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", paused);
  $("pause").textContent = paused ? "Go on" : "Pause";
  drawLog();
};
$("log").onclick = (e) => {
  const tr = e.target.closest("tr.one");
  if (tr && !getSelection().toString()) unfold(tr);
};
$("log").onkeydown = (e) => {
  if ((e.key === "Enter" || e.key === " ") && e.target.matches("tr.one")) { e.preventDefault(); unfold(e.target); }
};
afterwards(drawLog);
