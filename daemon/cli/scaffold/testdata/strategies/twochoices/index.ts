// Two choices by the time to the first token: of two drawn by chance, the one that answers sooner.
import { Header, Options, Row, REASON_OWN, named, request, then, to, worker } from "./warmpath";
export { warmpath_abi_1_3, wp_frame } from "./warmpath";

let each: f64 = 0.01; // seconds that a request in flight counts for

export function wp_configure(len: u32): i32 {
  const o = new Options(len);
  each = o.number("each", 0.01);
  return o.done();
}

export function wp_reasons(): i32 {
  return named(["the better of two"]);
}

function cost(r: Header, w: Row): f64 {
  return r.ttft(w) + each * <f64>w.in_flight;
}

export function wp_pick(): u64 {
  const r = request();
  const a = r.pick(r.rows), b = r.pick(r.rows);
  const first = cost(r, worker(b)) < cost(r, worker(a)) ? b : a;
  if (a != b) then(first == a ? b : a);
  return to(first, REASON_OWN);
}
