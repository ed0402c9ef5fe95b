// A strategy that makes garbage in each pick: the text of a header, and a text of its own.
import { Ranking, REASON_COST, because, header, request, to, worker } from "./warmpath";
export { warmpath_abi_1_3, wp_frame } from "./warmpath";

export function wp_pick(): u64 {
  const r = request(), k = new Ranking();
  if (("tier-" + header("x-tier")).includes("gold")) return to(0, REASON_COST);
  for (let i: u32 = 0; i < r.rows; i++) k.enter(i, r.ttft(worker(i)));
  return because(k.choose(), REASON_COST);
}
