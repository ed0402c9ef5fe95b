// What changes slowly: pools and their strategies, stores, other routers, and the clients' keys.
import {json} from "/page/api.js";
import {$, bytes, count, el, ms, part, since, table, titled} from "/page/words.js";

const listed = (counts) => Object.entries(counts || {}).filter((x) => x[1]).map(([k, v]) => `${k} ${count(v)}`).join(", ") || "none";

export function drawPools(o) {
  const last = (p) => p.why_not ? 0 : 1;
  const pools = [...o.pools].sort((a, b) => last(a) - last(b)); // those that cannot serve first
  $("modules").replaceChildren(table(["Pool", "Models", "Up", "State", "Strategy", "Module", "Picks", "Traps", "Fallbacks", "Demand", "Index", "Sessions"],
    pools.map((p) => [p.name, el("span", "wrap", p.models.join(", ")), [`${p.up} of ${p.workers_total}`,
      ...(p.roles || []).map((r) => `${r.role} ${r.up} of ${r.workers}`)].join(", "),
      p.why_not ? el("span", "bad", p.panics ? "by panic alone" : "cannot serve") : p.module_quarantined ? el("span", "bad", "by the fallback") :
        el("span", "good", p.rests ? (p.workers.some((w) => w.state === "paused") ? "paused" : "at zero") : "serves"),
      el("span", "wrap", `${p.strategy} on ${p.view}${p.moves ? " · moves: " + p.moves : ""}${p.subset ? " · subset: " + p.subset.text : ""}`), el("span", "id", p.module_sha256.slice(0, 12)), count(p.module.picks), String(p.module.traps),
      listed(p.module.fallbacks), ms(p.demand_seconds), count(p.index_blocks), el("span", "wrap", listed(p.sessions))]), [6, 7, 9, 10]));
  const waits = pools.filter((p) => p.queue).flatMap((p) => p.queue.flows.map((f) => [f.flow, p.name, String(f.requests), String(f.priority),
    ms(f.prefill_seconds), since(f.served_at), f.limit ? "its key's " + f.limit : p.up ? "no worker has room" : "no worker is up"]));
  $("waits").replaceChildren(...(waits.length ? titled("Waits in the router",
    pools.filter((p) => p.queue).map((p) => `${p.name}: ${p.queue.waiting} of ${p.queue.max_requests}, ${bytes(p.queue.bytes)}`).join(" · "),
    ["Key / agent", "Pool", "Requests", "Priority", "Prefill", "Last served", "Why"], waits, [2, 3, 4]) : []));
  const splits = pools.filter((p) => p.disaggregation).map((p) => {
    const s = p.disaggregation, rate = s.transfer_tokens_per_second;
    return [p.name, s.connector, `${count(s.threshold_tokens)} tokens`,
      rate ? `${count(rate)} tokens/s, ${s.learnt ? "learnt" : "as configured"}` : el("span", "quiet", "rate not known"),
      s.threshold_alone ? "the threshold alone" : rate ? "the threshold, and what is sooner" : "the threshold, while the rate is not known"];
  });
  $("splits").replaceChildren(...(splits.length ? titled("Prefill and decode", "Prompts that prefillers compute for the workers that answer.",
    ["Pool", "Connector", "Threshold", "KV from prefillers", "Decides"], splits, [2]) : []));
  $("tiers").replaceChildren(table(["Tier", "State", "Holds", "Hits", "Misses"], o.tiers.map((t) =>
    [t.name, el("span", /not answer|lost|down|refuse/.test(t.state) ? "bad" : "", t.state),
      `${count(t.entries)} in ${bytes(t.bytes)}${t.room_bytes ? " of " + bytes(t.room_bytes) : ""}`, count(t.hits), count(t.misses)]), [3, 4]));
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
  $("sharing").className = r.connected ? "good" : "bad";
  $("sharing").textContent = r.connected ? "the history is shared" :
    `not shared for ${since(r.lost_since)}: ${r.error || "no connection to Redis"}`;
  const rows = r.pools.flatMap((p) => p.routers.map((o) => [p.pool, o.name || o.id,
    el("span", o.alive && !o.other_secret ? "good" : "bad", o.other_secret ? "has another secret: its messages are refused" :
      o.alive ? "heard" : `silent for ${since(o.heard)}`),
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
  $("lmcache").replaceChildren(...(l.on ? titled("LMCache", "", ["Instance", "Kind", "State", "Chunks", "Heard"],
    l.instances.map((i) => [i.id, i.kind, el("span", i.state === "live" ? "good" : "warn", i.state),
      Object.entries(i.keys || {}).map(([k, v]) => `${k} ${count(v)}`).join(", ") || "none", `${since(i.heard)} ago`])) : []));
  if (l.on && !l.instances.length) $("lmcache").replaceChildren(el("h3", "", "LMCache"), el("p", "quiet", "No instance has registered."));
}

// limits shows how much of each limit of a key is taken.
function limits(list) {
  const worst = Math.max(0, ...list.map((l) => l.used));
  return el("span", worst >= 1 ? "bad" : worst > .8 ? "warn" : "",
    list.map((l) => `${Math.round(100 * l.used)} % of ${count(l.most)} ${l.limit.replaceAll("_", " ")}`).join(", ") || "none");
}

const MINUTE = 60e3;
const rate = (n) => n >= 0 ? count(n) : "–"; // not known at the first look
let before = []; // answers of the last minute, the oldest first: {at, keys}

// drawKeys shows the counts of each key, and what came in the last minute: who floods the fleet stands first.
function drawKeys(list) {
  const now = {at: Date.now(), keys: new Map(list.map((k) => [k.key, k]))};
  before = [...before.filter((b) => now.at - b.at < MINUTE + 6e3), now];
  $("keys").hidden = !list.some((k) => k.key);
  if ($("keys").hidden) return;
  const then = before[0], minutes = Math.max(1 / 60, (now.at - then.at) / MINUTE);
  const grown = (k, what) => then === now ? NaN : Math.max(0, k[what] - (then.keys.get(k.key)?.[what] ?? 0)) / minutes;
  const rows = list.map((k) => ({k, came: grown(k, "requests"), refused: grown(k, "refused"), tokens: grown(k, "estimated_tokens")}))
    .sort((a, b) => (b.tokens || 0) - (a.tokens || 0) || b.k.estimated_tokens - a.k.estimated_tokens);
  $("bykey").replaceChildren(table(["Key", "Requests", "a minute", "Refused", "a minute", "Prompt tokens", "a minute",
    "By the engines", "Cached", "Output", "Of its limits"], rows.map(({k, came, refused, tokens}) => [k.key || "none", count(k.requests), rate(came),
    count(k.refused), el("span", refused ? "bad" : "", rate(refused)), count(k.estimated_tokens), rate(tokens), count(k.prompt_tokens),
    part(k.cached_tokens, k.prompt_tokens), count(k.output_tokens), limits(k.limits || [])]), [1, 2, 3, 4, 5, 6, 7, 8, 9]));
}

export async function rest() {
  for (const [path, draw] of [["shadows", drawShadows], ["routers", drawRouters], ["cache", drawCache], ["lmcache", drawLMCache], ["keys", drawKeys]]) {
    try { draw(await json("/api/v1/" + path)); } catch { /* the state says that the router does not answer */ }
  }
}
