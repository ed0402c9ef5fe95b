// The last hour: four charts of one pool or all, the events in it, and the curves of the workers.
import {json} from "/page/api.js";
import {Chart} from "/page/chart.js";
import {$, clock, count, el, ms, percent} from "/page/words.js";

export const curves = new Map(); // "pool worker" -> {queue_seconds, kv_usage, ttft_seconds}

const perMinute = (v) => count(Math.round(v * 10) / 10);
const charts = ["Requests a minute", "First token", "Prompt tokens cached", "Load"].map((title) => new Chart(title));
$("charts").append(...charts.map((c) => c.figure));

const SIGNS = {start: ["●", "quiet"], upgrade: ["⇧", "quiet"], reload: ["↻", "quiet"], refused: ["✕", "bad"], up: ["▲", "good"]};
const sign = (kind) => SIGNS[kind] ?? ["▼", kind === "draining" || kind === "asleep" ? "warn" : "bad"];
const WORDS = {start: "started, version", upgrade: "took over from another process, version", reload: "file taken:", refused: "file refused:"};

function inWords(m) {
  if (!m.workers) return `${WORDS[m.kind] ?? m.kind} ${m.text || ""}`;
  return `${m.workers.join(", ")}${m.more ? ` and ${m.more} more` : ""} of ${m.pool} ${m.kind}`;
}

let last = null;

function draw() {
  const h = last;
  if (!h) return;
  const spans = h.spans, load = h.load, times = spans.map((s) => s.at);
  const some = (has, of) => spans.map((x) => has(x) ? of(x) : null);
  const a = 60 / h.step_seconds; // of a span to a minute
  const marks = h.events.slice(-60).map((m) => ({at: m.at, sign: sign(m.kind)[0], grade: sign(m.kind)[1]}));
  charts[0].draw(times, [
    {name: "came", style: "first", words: perMinute, ceiling: 1, values: spans.map((x) => a * x.arrived)},
    {name: "refused", style: "second", words: perMinute, values: spans.map((x) => a * x.refused)},
    {name: "failed", style: "third", words: perMinute, values: spans.map((x) => a * x.failed)}], marks);
  charts[1].draw(times, [
    {name: "half within", style: "first", words: ms, ceiling: .01, values: some((x) => x.streams, (x) => x.ttft_p50_seconds)},
    {name: "9 of 10", style: "second", words: ms, values: some((x) => x.streams, (x) => x.ttft_p90_seconds)}], marks);
  charts[2].draw(times, [
    {name: "engines say", style: "first", words: percent, ceiling: 1, values: some((x) => x.known_tokens, (x) => x.cached_tokens / x.known_tokens)},
    {name: "believed", style: "second", words: percent, ceiling: 1, values: some((x) => x.known_tokens, (x) => x.believed_tokens / x.known_tokens)}], marks);
  charts[3].draw(times, [
    {name: "queue", style: "first", words: ms, ceiling: .01, values: load.map((x) => x.up < 0 ? null : x.queue_seconds)},
    {name: "KV in use", style: "second", words: percent, ceiling: 1, right: true, values: load.map((x) => x.up > 0 ? x.kv_usage : null)}], marks);
  const told = h.events.slice(-100).reverse().map((m) => el("li", "", el("span", sign(m.kind)[1], sign(m.kind)[0]), ` ${clock(m.at)} ${inWords(m)}`));
  $("newest").replaceChildren(...(told.length ? [...told[0].cloneNode(true).childNodes] : ["no event in the last hour"]));
  $("events").replaceChildren(...told);
}

let asked = 0;

// hour asks for the last hour of a pool, "" = all, and for the curves every third time: a point of them is half a minute.
export async function hour(pool, now) {
  const withCurves = now || asked++ % 3 === 0;
  try {
    last = await json("/api/v1/timeline?" + new URLSearchParams({pool, curves: withCurves ? 1 : 0}));
  } catch { return; }
  if (withCurves) curves.clear();
  for (const c of last.workers || []) curves.set(c.pool + " " + c.worker, c);
  draw();
}

addEventListener("resize", draw);
