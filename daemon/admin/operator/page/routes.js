// From the name of a model to the workers that serve it: by [[models]], the pools' patterns, and what the workers list.
import {$, count, el, percent, table} from "/page/words.js";

const MOST = 100; // names
const fits = (p, model) => p.models.some((x) => x.endsWith("*") ? model.startsWith(x.slice(0, -1)) : x === model);

// workers says how many of a pool's workers serve the model, by role.
function workers(p, model) {
  const roles = p.serving[model] ?? [];
  if (!roles.length) return el("span", "bad", "no worker lists it");
  const up = roles.some((n) => n.up), every = roles.every((n) => n.up === n.workers);
  return el("span", every ? "good" : up ? "warn" : "bad",
    roles.map((n) => `${n.role || (roles.length > 1 ? "others" : "")} ${n.up} of ${n.workers} up`.trim()).join(", "));
}

// drawRoutes draws a row for each model that a name leads to. The first pool that fits serves.
export function drawRoutes(config, o) {
  const listed = new Set(o.pools.flatMap((p) => Object.keys(p.serving)));
  for (const p of o.pools) for (const x of p.models) if (!x.endsWith("*")) listed.add(x);
  const names = new Map((config.models || []).map((m) => [m.name, m]));
  for (const model of [...listed].sort()) if (!names.has(model)) names.set(model, {name: model});
  const rows = [];
  for (const m of [...names.values()].slice(0, MOST)) {
    const to = m.to?.length ? m.to : [{model: m.name, weight: 1}], all = to.reduce((n, t) => n + t.weight, 0);
    to.forEach((t, i) => {
      const p = o.pools.find((p) => fits(p, t.model));
      if (!p && !m.to?.length) return; // a worker lists it, and nobody may ask for it
      rows.push([i ? "" : m.name + (m.hidden ? " (hidden)" : ""), (to.length > 1 ? percent(t.weight / all) + " " : "") + (t.model === m.name ? "" : "→ " + t.model),
        p ? p.name : el("span", "bad", "no pool"), p ? workers(p, t.model) : "", !i && m.fallback ? `${m.fallback}, if ${m.on?.join(", ") || "it cannot"}` : ""]);
    });
  }
  const drawn = JSON.stringify(rows.map((r) => r.map((c) => c.textContent ?? c)));
  if ($("names").said === drawn) return;
  $("names").said = drawn;
  $("names").replaceChildren(rows.length ? table(["Name", "Model", "Pool", "Workers", "Else"], rows) : el("p", "quiet", "No worker lists a model."));
  if (names.size > MOST) $("names").append(el("p", "quiet", `and ${count(names.size - MOST)} more names`));
}
