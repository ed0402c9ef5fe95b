// The operator's page. It asks /api/v1 and draws the answers; every text goes in as text, never as markup.
import {chart} from "/page/chart.js";

const $ = (id) => document.getElementById(id);
const el = (name, cls, ...inside) => {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  e.append(...inside.filter((x) => x !== null && x !== undefined));
  return e;
};
const TOKEN = "warmpath-admin-token";

// ---- the API

let asking = null; // the login that is open

function login(refused) {
  asking ??= new Promise((done) => {
    $("refused").textContent = refused ? "That token was refused." : "";
    $("token").value = "";
    $("login").showModal();
    $("login").onclose = () => {
      sessionStorage.setItem(TOKEN, $("token").value.trim());
      $("token").value = "";
      asking = null;
      done();
    };
  });
  return asking;
}

async function call(path, how = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN), headers = {...how.headers};
    if (token) headers.Authorization = "Bearer " + token;
    const r = await fetch(path, {...how, headers, cache: "no-store"});
    if (r.status !== 401) return r;
    if (token === sessionStorage.getItem(TOKEN)) sessionStorage.removeItem(TOKEN);
    await login(Boolean(token));
  }
}

async function json(path, how) {
  const r = await call(path, how), text = await r.text();
  let v;
  try { v = JSON.parse(text); } catch { v = {error: text.slice(0, 200)}; }
  if (!r.ok) throw new Error(v.error || r.status);
  return v;
}

function notice(text) {
  $("notice").hidden = !text;
  $("notice").textContent = text || "";
}

// ---- words

const ms = (s) => s >= 10 ? s.toFixed(0) + " s" : s >= 1 ? s.toFixed(2) + " s" : s >= .01 ? (s * 1e3).toFixed(0) + " ms" : (s * 1e3).toFixed(1) + " ms";
const percent = (x) => (100 * x).toFixed(0) + " %";
const count = (n) => n >= 1e6 ? (n / 1e6).toFixed(1) + " M" : n >= 1e4 ? (n / 1e3).toFixed(0) + " k" : String(n);
const bytes = (n) => n >= 1 << 30 ? (n / (1 << 30)).toFixed(1) + " GiB" : n >= 1 << 20 ? (n / (1 << 20)).toFixed(1) + " MiB" : (n / 1024).toFixed(0) + " KiB";
function since(when, now) {
  const s = Math.max(0, (new Date(now) - new Date(when)) / 1000);
  return s < 90 ? s.toFixed(0) + " s" : s < 5400 ? (s / 60).toFixed(0) + " min" : s < 172800 ? (s / 3600).toFixed(1) + " h" : (s / 86400).toFixed(0) + " days";
}

function table(head, rows, numbers = []) {
  const cls = (i) => numbers.includes(i) ? "n" : "";
  const t = el("table", "", el("thead", "", el("tr", "", ...head.map((h, i) => el("th", cls(i), h)))));
  t.append(el("tbody", "", ...rows.map((r) => el("tr", "", ...r.map((c, i) => el("td", cls(i), c))))));
  return el("div", "wide", t);
}

// ---- pools and workers

function facts(pairs) {
  const list = el("dl");
  for (const [what, value] of pairs) if (value !== null) list.append(el("dt", "", what), el("dd", "", value));
  return list;
}

function grade(w) {
  if (w.state === "full") return "warn";
  if (w.state === "up") return w.breaker === "closed" ? "good" : "warn";
  return w.drained || w.state === "starting" || w.state === "draining" ? "warn" : "bad";
}

async function drain(pool, worker, on) {
  if (on && !await sure(`Drain ${worker}?`, "It gets no new requests; those that it has run to their end.")) return;
  const what = `${on ? "drain" : "undrain"} ${worker} of ${pool}`;
  try {
    const r = await json(`/api/v1/pools/${encodeURIComponent(pool)}/workers/${encodeURIComponent(worker)}/drain`,
      {method: on ? "POST" : "DELETE"});
    notice(r.warning && `${what}: done, but ${r.warning}`);
  } catch (e) { notice(`${what}: not done: ${e.message}`); }
  overview();
}

// A click is lost if what it began on is drawn anew before the button is released. So nothing is drawn while a button or a
// finger is down, for up to five seconds.
let pressed = -Infinity;
const held = () => performance.now() - pressed < 5000;
addEventListener("pointerdown", () => { pressed = performance.now(); }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => {
  pressed = -Infinity;
  drawLog();
}), true);

// refocus focuses the button that was drawn anew since it had the focus.
function refocus(key) {
  if (key) document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus();
}

function sure(title, text) {
  $("sure-title").textContent = title;
  $("sure-text").textContent = text;
  $("sure").returnValue = "no";
  const focus = document.activeElement?.dataset?.key;
  $("sure").showModal();
  return new Promise((done) => {
    $("sure").onclose = () => {
      refocus(focus);
      done($("sure").returnValue === "yes");
    };
  });
}

function card(pool, w, now) {
  const g = grade(w);
  const button = el("button", "", w.drained ? "Undrain" : "Drain");
  button.type = "button";
  button.dataset.key = `drain ${pool} ${w.id}`;
  button.setAttribute("aria-label", `${button.textContent} ${w.id}`);
  button.onclick = () => drain(pool, w.id, !w.drained);
  const kv = el("progress");
  kv.max = 1;
  kv.value = w.kv_usage;
  kv.setAttribute("aria-label", `KV cache of ${w.id} in use`);
  const events = w.kv_events;
  const c = el("article", "card " + g,
    el("div", "top", el("h3", "", w.id), el("span", "tag " + g, `${w.state} for ${since(w.since, now)}`)),
    facts([
      ["in flight", String(w.in_flight) + (w.others_in_flight ? ` + ${w.others_in_flight} elsewhere` : "") +
        (w.max_in_flight ? ` of ${w.max_in_flight}` : "")],
      ["running, waiting", `${w.running}, ${w.waiting}`],
      ["queue", ms(w.queue_seconds)],
      ["slowness", w.slowness.toFixed(2)],
      ["first output", w.ttft_seconds ? ms(w.ttft_seconds) : "none seen"],
      ["hit rate", w.hit_rate < 0 ? "not said" : percent(w.hit_rate)],
      ["breaker", w.breaker],
      ["KV events", events ? (events.live ? `live, lag ${ms(events.lag_seconds ?? 0)}` : events.state) : null],
      ["KV in use", percent(w.kv_usage)],
    ]), kv);
  if (w.why) c.append(el("p", "warn", w.why));
  if (w.last_error && !w.last_error_over) c.append(el("p", "bad", `${w.last_error}, ${since(w.last_error_at, now)} ago`));
  c.append(el("p", "", button));
  c.id = place(pool, w.id);
  return c;
}

const place = (pool, worker) => `worker ${pool} ${worker}`;

// ill names the first workers that are not well, each with a link to its card: among many a card is far down.
function ill(p) {
  const all = p.workers.filter((w) => grade(w) !== "good");
  if (!all.length) return null;
  const line = el("p", all.some((w) => grade(w) === "bad") ? "bad" : "warn");
  all.slice(0, 10).forEach((w, i) => {
    const a = el("a", "", w.id);
    a.href = "#" + encodeURIComponent(place(p.name, w.id));
    a.dataset.key = `look ${p.name} ${w.id}`;
    line.append(i ? ", " : "", a, ` is ${w.state === "up" ? "up, its breaker " + w.breaker : w.state}`);
  });
  if (all.length > 10) line.append(` and ${all.length - 10} more`);
  return line;
}

function drawPools(o) {
  if (held()) return;
  const focus = document.activeElement?.dataset?.key;
  $("pools").replaceChildren(...o.pools.map((p) => {
    const models = p.models.join(", ");
    const head = el("p", "quiet", `models ${models} · ${p.up} of ${p.workers.length} up · by ${p.strategy} on ${p.view} · ` +
      `demand ${ms(p.demand_seconds)} of prefill`);
    return el("div", "pool", el("h3", "", p.name), head, p.why_not ? el("p", "bad", p.why_not) : null, ill(p),
      el("div", "grid", ...p.workers.map((w) => card(p.name, w, o.now))));
  }));
  refocus(focus);
}

function drawStores(o) {
  const kinds = [["opened", "opened"], ["key", "named"], ["response", "responses"]];
  $("sessions").replaceChildren(table(["Pool", ...kinds.map((k) => k[1])],
    o.pools.map((p) => [p.name, ...kinds.map((k) => count(p.sessions[k[0]] || 0))]), [1, 2, 3]));
  const index = o.pools.map((p) => [`prefix index of ${p.name}`, `${count(p.index_blocks)} blocks`, "", "", p.view]);
  $("tiers").replaceChildren(table(["Tier", "Holds", "Hits", "Misses", "State"], [...index, ...o.tiers.map((t) =>
    [t.name, `${count(t.entries)} in ${bytes(t.bytes)}${t.room_bytes ? " of " + bytes(t.room_bytes) : ""}`, count(t.hits),
      count(t.misses), t.state])], [2, 3]));
  $("modules").replaceChildren(table(["Pool", "Strategy", "Module", "Picks", "Instances", "Traps", "Fallbacks", "State"],
    o.pools.map((p) => [p.name, p.strategy, el("span", "id", p.module_sha256.slice(0, 12)), count(p.module.picks),
      String(p.module.instances), String(p.module.traps),
      Object.entries(p.module.fallbacks || {}).map(([k, v]) => `${k} ${v}`).join(", ") || "none",
      p.module_quarantined ? el("span", "bad", "set aside: " + p.module.last_error) : el("span", "good", "serves")]), [3, 4, 5]));
}

// ---- what is there only where it is configured

const part = (of, all) => all ? percent(of / all) : "none";

// titled is a table under a heading, and nothing without rows.
function titled(title, note, head, rows, numbers) {
  return rows.length ? [el("h3", "", title), note ? el("p", "quiet", note) : null, table(head, rows, numbers)].filter(Boolean) : [];
}

function drawShadows(pools) {
  const rows = pools.flatMap((p) => p.shadows.map((s) => {
    const other = s.seen - s.agreed - s.declined - s.failed - s.rejected;
    const left = Object.entries({declined: s.declined, rejects: s.rejected, failed: s.failed}).filter((x) => x[1]);
    return [p.pool, s.strategy, p.strategy, count(s.seen), part(s.agreed, s.seen), count(other),
      `${count(s.held_tokens)} | ${count(s.live_held_tokens)}`,
      s.seen ? `${(s.nanoseconds / 1e3 / s.seen).toFixed(0)} | ${(s.live_nanoseconds / 1e3 / s.seen).toFixed(0)} µs` : "",
      left.map(([k, v]) => `${k} ${v}`).join(", ") + (p.dropped ? ` not seen ${p.dropped}` : "")];
  }));
  $("shadows").replaceChildren(...titled("Shadows", "They decide the same requests and choose nothing. Tokens held and time: shadow | serving.",
    ["Pool", "Shadow", "Beside", "Seen", "Agreed", "Other worker", "Tokens held", "Time", "Else"], rows, [3, 4, 5, 6, 7]));
}

function drawRouters(r) {
  $("routers").hidden = !r.on;
  if (!r.on) return;
  const now = new Date();
  $("sharing").className = r.connected ? "good" : "bad";
  $("sharing").textContent = r.connected ? "the history is shared" :
    `not shared for ${since(r.lost_since, now)}: ${r.error || "no connection to Redis"}`;
  const rows = r.pools.flatMap((p) => p.routers.map((o) => [p.pool, o.name || o.id,
    el("span", o.alive && !o.other_secret ? "good" : "bad", o.other_secret ? "has another secret: its messages are refused" :
      o.alive ? "heard" : `silent for ${since(o.heard, now)}`),
    ms(o.lag_seconds), count(o.messages), String(o.in_flight), String(o.workers)]));
  $("others").replaceChildren(...(rows.length ? [table(["Pool", "Router", "State", "Lag", "Messages", "In flight", "Workers"],
    rows, [3, 4, 5, 6])] : [el("p", "quiet", "No other router has been heard.")]));
}

const tierNames = {l1: "memory", disk: "disk", l2: "behind"};

function drawCache(c) {
  const room = c.tokens?.room ? `room for some ${count(c.tokens.room)} tokens · ` : "";
  $("kvcache").replaceChildren(...(c.open ? titled("KV cache of the workers",
    `${room}evicts by ${c.policy} · ${count(c.puts)} put · ${count(c.misses)} missed`,
    ["Tier", "Values", "Bytes", "Hits", "Evicted"], c.tiers.map((t) => [tierNames[t.tier] || t.tier, count(t.values),
      bytes(t.bytes) + (t.max_bytes ? " of " + bytes(t.max_bytes) : ""), count(t.hits), count(t.evictions)]), [1, 2, 3, 4]) : []));
}

function drawLMCache(l) {
  const now = new Date();
  $("lmcache").replaceChildren(...(l.on ? titled("LMCache", "", ["Instance", "Kind", "State", "Chunks", "Heard"],
    l.instances.map((i) => [i.id, i.kind, el("span", i.state === "live" ? "good" : "warn", i.state),
      Object.entries(i.keys || {}).map(([k, v]) => `${k} ${count(v)}`).join(", ") || "none", `${since(i.heard, now)} ago`])) : []));
  if (l.on && !l.instances.length) $("lmcache").replaceChildren(el("h3", "", "LMCache"), el("p", "quiet", "No instance has registered."));
}

async function rest() {
  for (const [path, draw] of [["shadows", drawShadows], ["routers", drawRouters], ["cache", drawCache], ["lmcache", drawLMCache]]) {
    try { draw(await json("/api/v1/" + path)); } catch { /* the state says that the router does not answer */ }
  }
}

// ---- state, configuration

let reloadSeen = "", answered = new Date();

// say writes the state. A screen reader reads it out when it changes, so it has no figure that always does.
function say(grade, text) {
  $("state").className = grade;
  if ($("state").textContent !== text) $("state").textContent = text;
}

// sayHealth says whether the router serves, which pools cannot, and how many workers are up.
function sayHealth(o) {
  const serves = o.ready && o.pools.some((p) => !p.why_not || p.panics);
  const state = o.draining ? "draining" : serves ? "ready" : "not ready";
  const cannot = o.pools.filter((p) => p.why_not).map((p) => `pool ${p.name}: ${p.why_not}`);
  const workers = o.pools.flatMap((p) => p.workers), up = o.pools.reduce((n, p) => n + p.up, 0);
  say(state !== "ready" || cannot.length ? "bad" : workers.every((w) => grade(w) === "good") ? "good" : "warn",
    [state, ...cannot, `${up} of ${workers.length} workers up`].join(" · "));
  $("figures").textContent = `${o.in_flight} in flight · ${o.connections} connection${o.connections === 1 ? "" : "s"} · ${o.version} · up ${since(o.began, o.now)}`;
}

async function overview() {
  let o;
  try { o = await json("/api/v1/overview"); } catch (e) {
    say("bad", `the router does not answer; what stands below is of ${answered.toLocaleTimeString()}`);
    $("figures").textContent = "";
    document.body.classList.add("stale");
    return;
  }
  answered = new Date();
  document.body.classList.remove("stale");
  sayHealth(o);
  drawPools(o);
  drawStores(o);
  const r = o.reload;
  $("reloaded").className = r.ok ? "quiet" : "bad";
  const last = o.last_change;
  $("reloaded").textContent = (r.ok ? `read ${since(r.at, o.now)} ago` : `refused ${since(r.at, o.now)} ago: ${r.error}`) +
    (last ? `; last change ${since(last.at, o.now)} ago: ${last.changed.join(", ")}` : "") +
    (r.needs_restart ? `; at the next start only: ${r.needs_restart.join(", ")}` : "");
  if (r.at !== reloadSeen) {
    try {
      $("config").textContent = words(await json("/api/v1/config"), "");
      reloadSeen = r.at;
    } catch { /* the next overview asks again */ }
  }
}

// words writes a configuration as TOML would.
function words(v, path) {
  const plain = [], below = [];
  for (const [k, x] of Object.entries(v)) {
    const name = path ? path + "." + k : k;
    if (Array.isArray(x) && x.length && typeof x[0] === "object") {
      for (const t of x) below.push(`\n[[${name}]]\n${words(t, name)}`);
    } else if (x && typeof x === "object" && !Array.isArray(x)) {
      below.push(`\n[${name}]\n${words(x, name)}`);
    } else plain.push(`${k} = ${JSON.stringify(x)}\n`);
  }
  return plain.join("") + below.join("");
}

// ---- the last hour

async function hour() {
  let pools;
  try { pools = await json("/api/v1/recent"); } catch { return; }
  const figures = [];
  for (const p of pools) {
    const s = p.spans, some = (has, of) => s.map((x) => has(x) ? of(x) : null);
    figures.push(
      chart(`${p.pool}, first output of streams`, [
        {name: "median", style: "first", values: some((x) => x.streams, (x) => x.ttft_p50_seconds)},
        {name: "99 of 100", style: "second", values: some((x) => x.streams, (x) => x.ttft_p99_seconds)}], ms),
      chart(`${p.pool}, hit rate`, [
        {name: "cached, as the engines count", style: "first", values: some((x) => x.known_tokens, (x) => x.cached_tokens / x.known_tokens)},
        {name: "believed", style: "second", values: some((x) => x.known_tokens, (x) => x.believed_tokens / x.known_tokens)}], percent, 1),
      chart(`${p.pool}, requests a minute`, [
        {name: "came", style: "first", values: s.map((x) => 2 * x.arrived)},
        {name: "refused or failed", style: "second", values: s.map((x) => 2 * (x.refused + x.failed))}], (v) => count(Math.round(v))));
  }
  $("charts").replaceChildren(...figures);
}

// ---- decisions

const MOST = 100; // rows
const kept = new Map(); // number -> decision
const open = new Set(); // numbers of rows that are unfolded
let paused = false;

function candidates(d) {
  const best = d.candidates?.[0]?.cost ?? 0;
  return table(["Worker", "Cost", "Queue", "Prefill", "Eviction", "In flight", "Blocks held", "Slowness", "Not chosen, as"],
    (d.candidates || []).map((c, i) => {
      if (c.skipped && (c.state !== "up" || !c.prefill)) return [c.worker, "", "", "", "", String(c.in_flight), "", "", c.skipped];
      const below = c.l1_blocks + c.l2_blocks ? ` + ${c.l1_blocks} + ${c.l2_blocks}` : "";
      return [c.worker, ms(c.cost), ms(c.wait), ms(c.prefill), ms(c.eviction), String(c.in_flight),
        `${c.gpu_blocks}${below} of ${d.prompt_blocks}`, c.slowness.toFixed(2),
        c.skipped || (i ? (c.cost >= best ? "+" : "−") + ms(Math.abs(c.cost - best)) : "chosen")];
    }), [1, 2, 3, 4, 5, 6, 7]);
}

function ending(d) {
  if (d.open) return el("span", "quiet", "under way");
  const bad = d.status >= 400 || d.end;
  return el("span", bad ? "bad" : "good", `${d.status}${d.end ? " " + d.end : ""}`);
}

function row(d) {
  const u = d.usage || {};
  const tr = el("tr", "one",
    el("td", "", new Date(d.at).toLocaleTimeString()), el("td", "", d.model || "none"), el("td", "", d.worker || "none"),
    el("td", "", (d.reason || d.end || "") + (d.retries ? `, after ${d.retries} more` : "")),
    el("td", "n", count(u.prompt_tokens ?? d.prompt_tokens)),
    el("td", "n", u.cached_tokens !== undefined ? count(u.cached_tokens) : d.believed_tokens ? `≈ ${count(d.believed_tokens)}` : ""),
    el("td", "n", d.ttft_ns ? ms(d.ttft_ns / 1e9) : ""), el("td", "n", d.open ? "" : ms(d.seconds)), el("td", "", ending(d)));
  tr.tabIndex = 0;
  tr.dataset.number = d.number;
  tr.setAttribute("aria-expanded", open.has(d.number));
  return tr;
}

function unfolded(d) {
  const td = el("td", "", el("p", "", el("span", "id", d.id), ` · ${d.method} ${d.path}${d.key ? " · key " + d.key : ""}` +
    ` · ${d.pool ? `pool ${d.pool}` : "no pool"}${d.strategy ? ` · by ${d.strategy}` : ""}` +
    `${d.fallback ? ` · fallback: ${d.fallback}` : ""}${d.session ? ` · session by ${d.session}` : ""}` +
    ` · believed cached ${count(d.believed_tokens)} tokens`));
  for (const a of d.attempts || []) td.append(el("p", "warn", `tried${d.worker ? " before" : ""}: ${a.worker}: ${a.reason}`));
  td.append(d.candidates ? candidates(d) : el("p", "quiet", "No strategy was asked."));
  td.colSpan = 9;
  return el("tr", "more", td);
}

function fits(d) {
  const q = $("filter").value.trim().toLowerCase();
  return (!$("failed").checked || d.status >= 400 || (!d.open && d.end)) &&
    (!q || [d.id, d.model, d.worker, d.key, d.pool, d.reason].some((x) => (x || "").toLowerCase().includes(q)));
}

let drawing = false;
function drawLog() {
  if (drawing || paused || held()) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    const body = $("log").tBodies[0], focus = document.activeElement?.dataset?.number;
    const all = [...kept.values()].sort((a, b) => b.number - a.number).filter(fits).slice(0, MOST);
    body.replaceChildren(...all.flatMap((d) => open.has(d.number) ? [row(d), unfolded(d)] : [row(d)]));
    $("none").hidden = all.length > 0;
    if (focus) body.querySelector(`[data-number="${CSS.escape(focus)}"]`)?.focus();
  });
}

function take(list) {
  for (const d of list || []) kept.set(d.number, d);
  for (const n of [...kept.keys()].sort((a, b) => b - a).slice(5 * MOST)) { kept.delete(n); open.delete(n); }
  drawLog();
}

function unfold(tr) {
  const n = Number(tr.dataset.number);
  if (!open.delete(n)) open.add(n);
  const was = paused;
  paused = false;
  drawLog();
  paused = was;
}

async function follow() {
  for (let wait = 500; ; wait = Math.min(10000, 2 * wait)) {
    try {
      const r = await call("/api/v1/decisions?limit=100", {headers: {Accept: "text/event-stream"}});
      if (!r.ok) throw new Error((await r.json()).error);
      $("live").textContent = "live";
      wait = 500;
      kept.clear(); // the router may be another process, which numbers from 1; it sends its last decisions first
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

// ---- what if

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
    const a = await json("/api/v1/whatif", {method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify({body, path: $("path").value, session: $("session").value})});
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

// ---- begin

$("ask").onsubmit = ask;
$("filter").oninput = drawLog;
$("failed").onchange = drawLog;
$("pause").onclick = () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", paused);
  $("pause").textContent = paused ? "Go on" : "Pause";
  drawLog();
};
$("log").onclick = (e) => { const tr = e.target.closest("tr.one"); if (tr) unfold(tr); };
$("log").onkeydown = (e) => {
  if ((e.key === "Enter" || e.key === " ") && e.target.matches("tr.one")) { e.preventDefault(); unfold(e.target); }
};
$("reload").onclick = async () => {
  if (!await sure("Reload the file?", "A file that is wrong is refused, and the configuration in force stays.")) return;
  try { await json("/api/v1/reload", {method: "POST"}); notice(""); } catch (e) { notice(e.message); }
  overview();
};

async function every(seconds, what) {
  for (;;) {
    if (!document.hidden) await what();
    await new Promise((done) => setTimeout(done, 1000 * seconds));
  }
}

await overview();
follow();
every(2, overview);
every(10, hour);
every(5, rest);
document.documentElement.dataset.ready = "yes";
