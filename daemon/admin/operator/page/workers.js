// The workers: one dense table of all pools, those in trouble first. A row unfolds to all that is known of a worker.
import {json} from "/page/api.js";
import {Curve} from "/page/chart.js";
import {curves, range} from "/page/hour.js";
import {$, afterwards, count, el, held, ms, named, notice, order, percent, put, since, sure} from "/page/words.js";

const FEW = matchMedia("(max-width: 640px)").matches ? 15 : 40; // rows, until all are asked for
const SLOW = 5; // times the median of its pool

let fleet = null; // the last overview
const MORE = 500; // rows that a click adds
let room = FEW; // rows
let sorted = {by: "state", down: false};
let changed = () => {}; // called when another pool is chosen
export const chosen = {pool: ""}; // "" = all
export const onChoice = (f) => { changed = f; };

const rows = new Map(); // "pool worker" -> row
const open = new Set(); // keys of rows that are unfolded
const keyOf = (w) => w.pool + " " + w.id;

// ---- what is wrong with a worker

const full = (w) => w.full ?? (w.max_in_flight > 0 && w.in_flight + (w.others_in_flight || 0) >= w.max_in_flight);

export function grade(w) {
  if (w.state === "outside of the subset") return "good";
  if (w.state === "up" || w.state === "full") return w.breaker !== "closed" || w.restarts_of_late > 1 || (w.last_error && !w.last_error_over) ? "warn" : "good";
  return w.drained || ["starting", "draining", "asleep", "paused"].includes(w.state) ? "warn" : "bad";
}

const late = (v, median) => median > 0 && v > SLOW * median;

// trouble orders the rows. A pool that cannot serve is named as a whole, so its workers come behind those that are sick alone.
function trouble(w) {
  const g = grade(w);
  return g !== "good" && w.dead ? 2 : g === "bad" ? 0 : g === "warn" ? 1 : late(w.ttft_seconds, w.median.ttft_seconds) || late(w.tpot_seconds, w.median.tpot_seconds) ? 3 : full(w) ? 4 : 5;
}

// words of everything that is wrong, each once.
function whyOf(w) {
  const why = [];
  if (w.breaker !== "closed") why.push("breaker " + w.breaker);
  if (w.restarts_of_late > 1) why.push(`${w.restarts_of_late} restarts in 5 min`);
  if (w.why) why.push(w.why);
  if (w.last_error && !w.last_error_over && w.last_error !== w.why) why.push(w.last_error);
  if (w.kv_events && !w.kv_events.live) why.push("KV events " + w.kv_events.state);
  return why.join("; ");
}

// ---- columns

const some = (has) => (o) => o.pools.some((p) => p.workers.some(has));
const role = (w) => w.labels?.role || "";

const COLUMNS = [
  {id: "worker", head: "Worker", of: (w) => w.id, put: (e, w) => named(e, w.id)},
  {id: "role", head: "Role", of: role, wanted: some(role)},
  {id: "pool", head: "Pool", of: (w) => w.pool},
  {id: "state", head: "State", of: (w) => trouble(w) * 1e12 - (trouble(w) < 3 ? new Date(w.since) / 1e3 : 0),
    put: (e, w) => put(e, full(w) && w.state === "up" ? "full" : `${w.state} ${since(w.since)}`, full(w) && grade(w) === "good" ? "warn" : grade(w))},
  {id: "flight", head: "In flight", n: true, of: (w) => w.in_flight + (w.others_in_flight || 0),
    say: (w) => w.in_flight + (w.others_in_flight ? "+" + w.others_in_flight : "") + (w.max_in_flight ? "/" + w.max_in_flight : "")},
  {id: "waiting", head: "Waiting", n: true, of: (w) => w.waiting, say: (w) => String(w.waiting)},
  {id: "queue", head: "Queue", n: true, of: (w) => w.queue_seconds, say: (w) => ms(w.queue_seconds), curve: "queue_seconds", ceiling: .05},
  {id: "kv", head: "KV", n: true, of: (w) => w.kv_usage, say: (w) => percent(w.kv_usage), curve: "kv_usage", ceiling: 1},
  {id: "first", head: "First token", n: true, of: (w) => w.ttft_seconds, say: (w) => w.ttft_seconds ? ms(w.ttft_seconds) : "–",
    curve: "ttft_seconds", ceiling: .01, cls: (w) => late(w.ttft_seconds, w.median.ttft_seconds) ? "bad" : ""},
  {id: "each", head: "Each token", n: true, of: (w) => w.tpot_seconds || 0, say: (w) => w.tpot_seconds ? ms(w.tpot_seconds) : "–",
    cls: (w) => late(w.tpot_seconds, w.median.tpot_seconds) ? "bad" : "", wanted: some((w) => w.tpot_seconds)},
  {id: "hits", head: "Hits", n: true, of: (w) => w.hit_rate, say: (w) => w.hit_rate < 0 ? "–" : percent(w.hit_rate)},
  {id: "slow", head: "Slowness", n: true, of: (w) => w.slowness, say: (w) => w.slowness.toFixed(2)},
  {id: "restarts", head: "Restarts", n: true, of: (w) => w.restarts, wanted: some((w) => w.restarts),
    say: (w) => w.restarts ? `${w.restarts}, ${since(w.restarted_at)} ago` : "", cls: (w) => w.restarts_of_late > 1 ? "warn" : ""},
  {id: "why", head: "Why", of: whyOf, put: (e, w) => put(e, e.title = whyOf(w))},
];

const heads = $("fleet").tHead.rows[0];
for (const c of COLUMNS) {
  const b = el("button", "link", c.head);
  b.type = "button";
  b.onclick = () => {
    sorted = {by: c.id, down: sorted.by === c.id ? !sorted.down : Boolean(c.n)};
    again();
  };
  c.th = el("th", (c.n ? "n " : "") + "c-" + c.id, b);
  heads.append(c.th);
}

function compare(a, b) {
  const c = COLUMNS.find((c) => c.id === sorted.by), x = c.of(a), y = c.of(b);
  const by = typeof x === "string" ? x.localeCompare(y, undefined, {numeric: true}) : x - y;
  return (sorted.down ? -by : by) || a.at - b.at;
}

// ---- rows

function makeRow(key) {
  const r = {tr: el("tr", "one"), cells: {}};
  for (const c of COLUMNS) {
    const td = el("td", (c.n ? "n " : "") + "c-" + c.id);
    r.cells[c.id] = c.curve ? new Curve(td) : td.appendChild(el("span"));
    r.tr.append(td);
  }
  r.tr.tabIndex = 0;
  r.tr.dataset.key = key;
  rows.set(key, r);
  return r;
}

function fill(r, w) {
  for (const c of COLUMNS) {
    const cell = r.cells[c.id];
    if (c.curve) {
      cell.say(c.say(w), c.cls?.(w) ?? "");
      const known = curves.get(r.tr.dataset.key);
      if (known) cell.draw(known[c.curve], range(), c.ceiling);
    } else if (c.put) c.put(cell, w);
    else put(cell, c.say ? c.say(w) : c.of(w), c.cls?.(w) ?? "");
  }
  const unfolded = open.has(r.tr.dataset.key);
  const said = String(unfolded);
  if (r.said !== said) {
    r.said = said;
    r.tr.setAttribute("aria-expanded", said);
  }
  if (unfolded) fillCard(r, w);
}

// ---- the card of one worker

function facts(w) {
  const e = w.kv_events;
  return [
    ["worker", w.id],
    ["pool", w.pool],
    ["role", role(w) || null],
    ["state", `${w.state} for ${since(w.since)}`],
    ["in flight", w.in_flight + (w.others_in_flight ? ` + ${w.others_in_flight} of other routers` : "") + (w.max_in_flight ? ` of ${w.max_in_flight}` : "")],
    ["running, waiting", `${w.running}, ${w.waiting}`],
    ["queue", ms(w.queue_seconds) + " of prefill"],
    ["KV in use", percent(w.kv_usage) + (w.kv_tokens ? ` of ${count(w.kv_tokens)} tokens` : "")],
    ["put back for want of KV", w.preempted ? `${count(w.preempted)} requests` : null],
    ["first token", w.ttft_seconds ? ms(w.ttft_seconds) : "none seen"],
    ["each token", w.tpot_seconds ? ms(w.tpot_seconds) : null],
    ["hit rate", w.hit_rate < 0 ? "not said" : percent(w.hit_rate)],
    ["slowness", w.slowness.toFixed(2)],
    ["restarts", w.restarts ? `${w.restarts}, the last ${since(w.restarted_at)} ago` : null],
    ["breaker", w.breaker],
    ["KV events", e ? (e.live ? `live, lag ${ms(e.lag_seconds ?? 0)}` : e.state) : null],
    ["rank", w.data_parallel_rank !== undefined ? `${w.data_parallel_rank} of ${w.endpoint}` : null],
    ["comes from", w.origin],
    ["labels", w.labels ? Object.entries(w.labels).map(([name, value]) => `${name}=${value}`).sort().join(", ") : null],
    ["models", (w.models || ["not read yet"]).join(", ")],
  ].filter((f) => f[1] !== null);
}

function makeCard() {
  const c = {list: el("dl"), why: el("p"), error: el("p"), button: el("button")};
  c.button.type = "button";
  const td = el("td", "", el("div", "card", c.list, c.why, c.error, el("p", "", c.button)));
  td.colSpan = COLUMNS.length;
  c.tr = el("tr", "more", td);
  return c;
}

function fillCard(r, w) {
  const c = r.card ??= makeCard();
  const list = facts(w);
  if (c.list.children.length !== list.length) c.list.replaceChildren(...list.map(() => el("div", "", el("dt"), el("dd"))));
  list.forEach((fact, i) => fact.forEach((text, k) => put(c.list.children[i].children[k], text)));
  put(c.why, w.why !== w.last_error || w.last_error_over ? w.why || "" : "", "warn");
  put(c.error, w.last_error && !w.last_error_over ? `${w.last_error}, ${since(w.last_error_at)} ago` : "", "bad");
  put(c.button, w.drained ? "Undrain" : "Drain");
  c.button.setAttribute("aria-label", `${c.button.textContent} ${w.id}`);
  c.button.onclick = () => drain(w, !w.drained);
}

let refresh = async () => {};
export const onChange = (f) => { refresh = f; };

async function drain(w, on) {
  const others = w.others_in_flight ? ` Other routers have ${w.others_in_flight} requests there.` : "";
  if (on && !await sure(`Drain ${w.id}?`, "It gets no new requests from this router; those that it has run to their end." + others)) return;
  const what = `${on ? "drain" : "undrain"} ${w.id} of ${w.pool}`;
  try {
    const r = await json(`/api/v1/pools/${encodeURIComponent(w.pool)}/workers/${encodeURIComponent(w.id)}/drain`,
      {method: on ? "POST" : "DELETE"});
    notice(r.warning && `${what}: done, but ${r.warning}`);
  } catch (e) { notice(`${what}: not done: ${e.message}`); }
  refresh();
}

// ---- pools

const chips = new Map(); // pool -> button

function chip(pool, text, cls) {
  let b = chips.get(pool);
  if (!b) {
    b = el("button");
    b.type = "button";
    b.onclick = () => choose(pool);
    chips.set(pool, b);
  }
  put(b, text, "chip " + cls);
  b.setAttribute("aria-pressed", chosen.pool === pool);
  return b;
}

function choose(pool) {
  chosen.pool = pool;
  again();
  changed();
}

const poolGrade = (p) => p.why_not ? "bad" : p.workers_in_trouble ? "warn" : "good";

function drawPools(o) {
  if (chosen.pool && !o.pools.some((p) => p.name === chosen.pool)) choose("");
  const names = new Set(o.pools.map((p) => p.name));
  for (const name of chips.keys()) if (name && !names.has(name)) chips.delete(name);
  $("pools").hidden = o.pools.length < 2;
  order($("pools"), [chip("", `all ${o.pools.length} pools`, ""), ...o.pools.map((p) => chip(p.name, `${p.name} ${p.up}/${p.workers_total}`, poolGrade(p)))]);
  const p = o.pools.length === 1 ? o.pools[0] : o.pools.find((p) => p.name === chosen.pool);
  put($("pool"), p ? `models ${p.models.join(", ")} · ${p.up} of ${p.workers_total} up · by ${p.strategy} on ${p.view} · demand ${p.demand_seconds.toFixed(1)} s of prefill` :
    `demand of all pools ${o.pools.reduce((n, p) => n + p.demand_seconds, 0).toFixed(1)} s of prefill`);
}

// ---- the table

// part is the query for the workers that are shown. By another column than the state, all are needed.
export function part() {
  if (sorted.by !== "state" || sorted.down) return "";
  const q = new URLSearchParams({limit: room, pool: chosen.pool, find: $("find").value.trim()});
  for (const key of [...open].slice(-20)) q.append("with", key); // one that was unfolded stays
  return "?" + q;
}

// keys are those of the rows that are shown.
export const keys = () => [...$("fleet").querySelectorAll("tr.one")].map((tr) => tr.dataset.key);

// again draws what is here, and asks for what is not.
function again() {
  draw();
  refresh();
}

export function drawWorkers(o) {
  fleet = o;
  let at = 0;
  for (const p of o.pools) {
    for (const w of p.workers) Object.assign(w, {pool: p.name, dead: Boolean(p.why_not), median: p.medians[role(w)], at: at++});
  }
  draw();
}

function fits(w) {
  const q = $("find").value.trim().toLowerCase();
  return (!chosen.pool || w.pool === chosen.pool) && (!q || [w.id, w.pool, w.state, whyOf(w), ...Object.entries(w.labels || {}).map((l) => l.join("="))].some((x) => x.toLowerCase().includes(q)));
}

function draw() {
  if (!fleet || held()) return;
  drawPools(fleet);
  const every = fleet.pools.flatMap((p) => p.workers), found = every.filter(fits).sort(compare);
  const sum = (f) => fleet.pools.reduce((n, p) => n + f(p), 0);
  const total = sum((p) => p.workers_total), fitting = part() ? sum((p) => p.workers_found) : found.length;
  const shown = found.slice(0, room);
  for (const w of found.slice(shown.length)) if (open.has(keyOf(w))) shown.push(w); // one that was unfolded stays
  $("fleet").classList.toggle("one-pool", fleet.pools.length < 2);
  for (const c of COLUMNS) {
    if (c.wanted) $("fleet").classList.toggle("no-" + c.id, !c.wanted(fleet));
    const sort = sorted.by !== c.id ? "none" : sorted.down ? "descending" : "ascending";
    if (c.th.getAttribute("aria-sort") !== sort) c.th.setAttribute("aria-sort", sort);
  }
  const there = new Set(every.map(keyOf)), focus = document.activeElement;
  for (const key of rows.keys()) if (!there.has(key)) rows.delete(key);
  const nodes = [];
  for (const w of shown) {
    const r = rows.get(keyOf(w)) ?? makeRow(keyOf(w));
    fill(r, w);
    nodes.push(r.tr);
    if (open.has(keyOf(w))) nodes.push(r.card.tr);
  }
  order($("fleet").tBodies[0], nodes);
  if (focus !== document.activeElement && document.contains(focus)) focus.focus({preventScroll: true}); // a row that moved
  put($("shown"), shown.length < total ? `${shown.length} of ${total} workers` : `${total} workers`);
  $("every").hidden = fitting <= FEW;
  put($("every"), room >= fitting ? `Show the first ${FEW}` : fitting - room > MORE ? `Show ${MORE} more` : `Show all ${fitting}`);
  $("every").onclick = () => {
    room = room >= fitting ? FEW : room + MORE;
    again();
  };
}

function toggle(key) {
  if (!open.delete(key)) open.add(key);
  draw();
}

// look unfolds a worker and brings it into sight.
export function look(pool, id) {
  const key = pool + " " + id;
  $("find").value = "";
  if (chosen.pool && chosen.pool !== pool) choose("");
  open.add(key);
  setTimeout(async () => { // when the button is released
    await refresh();
    draw();
    rows.get(key)?.tr.scrollIntoView({block: "center"});
    rows.get(key)?.tr.focus({preventScroll: true});
  }, 10);
}

const body = $("fleet").tBodies[0];
body.onclick = (e) => {
  const tr = e.target.closest("tr.one");
  if (tr && !getSelection().toString()) toggle(tr.dataset.key);
};
body.onkeydown = (e) => {
  if ((e.key === "Enter" || e.key === " ") && e.target.matches("tr.one")) { e.preventDefault(); toggle(e.target.dataset.key); }
};
$("find").oninput = again;
afterwards(draw); // what a click changed while the button was down
