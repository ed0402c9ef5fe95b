// Runs the checks of one Node client and prints one line for each, "ok NAME" or "FAIL NAME: why".
import assert from "node:assert/strict";

export { assert };
export const BASE = process.env.WARMPATH_URL;
export const MODEL = process.env.WARMPATH_MODEL;
const workers = process.env.WARMPATH_WORKERS.split(",");

export const CITY = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city", "days"],
  additionalProperties: false,
};

// running tells how many requests the workers have in hand.
async function running() {
  let total = 0;
  for (const url of workers) {
    const stats = await (await fetch(url + "/sim/stats")).json();
    total += stats.running + stats.waiting;
  }
  return total;
}

// waitRunning waits up to 10 s for it; a loaded machine takes longer than the router.
export async function waitRunning(wanted, what) {
  const end = Date.now() + 10000;
  for (let now; (now = await running()) !== wanted; ) {
    assert(Date.now() < end, `${what}: ${now} requests run at the workers, want ${wanted}`);
    await new Promise((done) => setTimeout(done, 10));
  }
}

// run runs the checks in order and exits 1 if one failed.
export async function run(client, checks) {
  let failed = 0;
  for (const [name, check] of Object.entries(checks)) {
    const line = `${client} ${name.replaceAll("_", " ")}`;
    try {
      await Promise.race([check(), new Promise((_, no) => setTimeout(() => no(new Error("60 s are over")), 60000).unref())]);
      console.log("ok", line);
    } catch (e) {
      failed++;
      console.log(`FAIL ${line}: ${e.name}: ${e.message}`.replaceAll("\n", " ").slice(0, 600));
      if (process.env.TRACE) console.error(e);
    }
  }
  process.exit(failed ? 1 : 0);
}
