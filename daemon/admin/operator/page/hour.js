// Four charts of one pool or all over the last minutes or the last hour, the events in it, and the curves of the workers.
import {json} from "/page/api.js";
import {Chart} from "/page/chart.js";
import {$, clock, count, el, ms, now, percent} from "/page/words.js";

export const curves = new Map(); // "pool worker" -> {queue_seconds, kv_usage, ttft_seconds}

const perMinute = (v) => count(v < 20 ? v : Math.round(v));
const charts = ["Requests a minute", "First token", "Prompt tokens cached", "Load"].map((title) => new Chart(title));
$("charts").append(...charts.map((c) => c.figure));

const SIGNS = {start: ["●", "quiet"], upgrade: ["⇧", "quiet"], reload: ["↻", "quiet"], refused: ["✕", "bad"], up: ["▲", "good"]};
const sign = (kind) => SIGNS[kind] ?? ["▼", ["draining", "asleep", "paused"].includes(kind) ? "warn" : "bad"];
const WORDS = {start: "started, version", upgrade: "took over from another process, version", reload: "file taken:", refused: "file refused:"};

function inWords(m) {
  if (!m.workers) return `${WORDS[m.kind] ?? m.kind} ${m.text || ""}`;
  return `${m.workers.join(", ")}${m.more ? ` and ${m.more} more` : ""} of ${m.pool} ${m.kind}`;
}

let last = null, began = 0, minutes = 0; // 0 = what fits the router's age
const RANGES = [5, 15, 60], words = (m) => m < 60 ? `${m} min` : "1 h";
export const range = () => minutes || RANGES.find((m) => now() - began < 60e3 * m) || 60;

const buttons = RANGES.map((m) => {
  const b = el("button", "chip", words(m).replace(/ |in/g, ""));
  b.setAttribute("aria-label", words(m));
  b.type = "button";
  b.onclick = () => { minutes = m; draw(); };
  return b;
});
$("range").append(...buttons);

export function ofAge(at) { began = +new Date(at); }

function draw() {
  const h = last;
  if (!h) return;
  const n = 60 * range() / h.step_seconds, ago = words(range()) + " ago";
  buttons.forEach((b, i) => b.setAttribute("aria-pressed", RANGES[i] === range()));
  const spans = h.spans.slice(-n), load = h.load.slice(-n), times = spans.map((s) => s.at);
  const some = (has, of) => spans.map((x) => has(x) ? of(x) : null);
  const sinceThen = h.events.filter((m) => now() - new Date(m.at) < 60e3 * range());
  // rate is what came in a minute: the router did not run in each span from its beginning to its end.
  const rate = (of) => spans.map((x) => {
    const begin = +new Date(x.at), lived = (Math.min(h.read, begin + 1e3 * h.step_seconds) - Math.max(began, begin)) / 1e3;
    return lived > 0 ? 60 * of(x) / Math.max(5, lived) : null;
  });
  const marks = sinceThen.slice(-60).map((m) => ({at: m.at, sign: sign(m.kind)[0], grade: sign(m.kind)[1]}));
  charts[0].draw(times, [
    {name: "came", style: "first", words: perMinute, ceiling: 1, values: rate((x) => x.arrived)},
    {name: "refused", style: "second", words: perMinute, values: rate((x) => x.refused)},
    {name: "failed", style: "third", words: perMinute, values: rate((x) => x.failed)}], marks, ago);
  charts[1].draw(times, [
    {name: "half within", style: "first", words: ms, ceiling: .01, values: some((x) => x.streams, (x) => x.ttft_p50_seconds)},
    {name: "9 of 10", style: "second", words: ms, values: some((x) => x.streams, (x) => x.ttft_p90_seconds)}], marks, ago);
  charts[2].draw(times, [
    {name: "engines say", style: "first", words: percent, ceiling: 1, values: some((x) => x.known_tokens, (x) => x.cached_tokens / x.known_tokens)},
    {name: "believed", style: "second", words: percent, ceiling: 1, values: some((x) => x.known_tokens, (x) => x.believed_tokens / x.known_tokens)}], marks, ago);
  charts[3].draw(times, [
    {name: "queue", style: "first", words: ms, ceiling: .01, values: load.map((x) => x.up < 0 ? null : x.queue_seconds)},
    {name: "KV in use", style: "second", words: percent, ceiling: 1, right: true, values: load.map((x) => x.up > 0 ? x.kv_usage : null)}], marks, ago);
  const told = sinceThen.slice(-100).reverse().map((m) => el("li", "", el("span", sign(m.kind)[1], sign(m.kind)[0]), ` ${clock(m.at)} ${inWords(m)}`));
  $("newest").replaceChildren(...(told.length ? [...told[0].cloneNode(true).childNodes] : [`no event in the last ${words(range())}`]));
  $("events").replaceChildren(...told);
}

let asked = 0;

// hour asks for the last hour of a pool, "" = all, and for the curves of workers, by keys, every third time: a point of them is half a minute.
export async function hour(pool, atOnce, workers) {
  const withCurves = atOnce || asked++ % 3 === 0 || workers.some((key) => !curves.has(key));
  try {
    const q = new URLSearchParams({pool, curves: withCurves ? 1 : 0});
    for (const key of withCurves ? workers : []) if (String(q).length < 3000) q.append("with", key); // a request's head has 4 KB
    last = await json("/api/v1/timeline?" + q);
    last.read = now();
  } catch { return; }
  if (withCurves) curves.clear();
  for (const c of last.workers || []) curves.set(c.pool + " " + c.worker, c);
  draw();
}

addEventListener("resize", draw);
