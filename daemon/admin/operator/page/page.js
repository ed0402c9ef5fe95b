// The operator's page. It asks /api/v1 and draws the answers; every text goes in as text, never as markup.
import {json} from "/page/api.js";
import {anew, follow} from "/page/decisions.js";
import {hour, ofAge} from "/page/hour.js";
import {drawRoutes} from "/page/routes.js";
import {drawPools, rest} from "/page/stores.js";
import {say, strip} from "/page/strip.js";
import {chosen, drawWorkers, keys, onChange, onChoice, part} from "/page/workers.js";
import {$, clock, isNow, notice, put, since, sure} from "/page/words.js";

let reloadSeen = "", answered = new Date(), config = null, asked = 0;

async function overview() {
  let o;
  const mine = ++asked;
  try { o = await json("/api/v1/overview" + part()); } catch {
    if (mine !== asked) return;
    say("bad", `the router does not answer; what stands below is of ${clock(answered)}`);
    $("figures").textContent = "";
    if (!document.body.classList.contains("stale")) anew();
    document.body.classList.add("stale");
    return;
  }
  if (mine !== asked) return; // another part was asked for meanwhile
  answered = new Date();
  isNow(o.now);
  ofAge(o.began);
  document.body.classList.remove("stale");
  strip(o);
  put($("figures"), `${o.in_flight} in flight · ${o.connections} connection${o.connections === 1 ? "" : "s"} · ${o.version} · up ${since(o.began)}`);
  drawWorkers(o);
  drawPools(o);
  await reloaded(o);
  if (config) drawRoutes(config, o);
}

// reloaded shows when the file was read, what changed last, and the configuration when it may be another.
async function reloaded(o) {
  const r = o.reload, last = o.last_change;
  put($("reloaded"), (r.ok ? `read ${since(r.at)} ago` : `refused ${since(r.at)} ago: ${r.error}`) +
    (last ? `; last change ${since(last.at)} ago: ${last.changed.join(", ")}` : "") +
    (r.needs_restart ? `; at the next start only: ${r.needs_restart.join(", ")}` : ""), r.ok ? "quiet" : "bad");
  if (r.at === reloadSeen) return;
  try {
    config = await json("/api/v1/config");
    $("config").textContent = words(config, "");
    reloadSeen = r.at;
  } catch { /* the next overview asks again */ }
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

$("reload").onclick = async () => {
  if (!await sure("Reload the file?", "A file that is wrong is refused, and the configuration in force stays.")) return;
  try { await json("/api/v1/reload", {method: "POST", patience: 60000}); notice(""); } catch (e) { notice(e.message); }
  overview();
};

async function every(seconds, what) {
  for (;;) {
    if (!document.hidden) await what();
    await new Promise((done) => setTimeout(done, 1000 * seconds));
  }
}

onChange(overview);
onChoice(() => hour(chosen.pool, true, keys()));
await overview();
follow();
every(2, overview);
every(10, () => hour(chosen.pool, false, keys()));
every(5, rest);
document.documentElement.dataset.ready = "yes";
