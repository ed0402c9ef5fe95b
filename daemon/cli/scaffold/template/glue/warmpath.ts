// The frame of a strategy, and what connects it to the host: warmpath's ABI 1.2. "warmpath plugin new" wrote this file; a
// later version of warmpath still runs what is built with it. The whole contract: docs/abi.md of warmpath

@STRUCTURES@
const MAX_WORKERS: u32 = 4096;

// In place of a worker: the host's fallback answers; the client is turned away, see reject_status; the request waits for a
// better one, see hold_millis.
export const DECLINE: i32 = -1;
export const REJECT: i32 = -2;
export const HOLD: i32 = -3;

// Header, rows and order area.
const area: usize = memory.data(<i32>(offsetof<Header>() + MAX_WORKERS * (offsetof<Row>() + 4)), 8);
let rows: u32 = 0;

// own sets the strategy's own number for the worker of that key, which all its instances then read as own of the row; from a
// callback own_of reads it.
// @ts-ignore: a decorator
@external("warmpath_v1", "own") export declare function own(key: u64, value: f64): i32;
// @ts-ignore: a decorator
@external("warmpath_v1", "own_of") export declare function own_of(key: u64): f64;

export function warmpath_abi_1_2(): void {}

export function wp_frame(max: u32): usize {
  if (max > MAX_WORKERS) unreachable();
  rows = max;
  return area;
}

// The request, and its candidates 0 to request().rows - 1.
export function request(): Header {
  return changetype<Header>(area);
}

export function worker(i: u32): Row {
  return changetype<Row>(area + offsetof<Header>() + <usize>i * offsetof<Row>());
}

// The answer: a worker's index, DECLINE, REJECT or HOLD, and a reason: 0, or a code of your own, which people see as its number,
// or by the name that the export wp_reasons gives it.
export function to(worker: i32, reason: u16): u64 {
  return ((<u64>reason) << 32) | (<u64>(<u32>worker));
}

// Keeps the request to the worker of an answer and those of then: nobody else gets it, whatever fails.
export function only(answer: u64): u64 {
  return answer | ((<u64>2) << 48);
}

// The next alternative, for the case that the chosen worker fails. The host adds those not named, unless the answer says only.
export function then(worker: u32): void {
  const h = request();
  store<u32>(area + offsetof<Header>() + <usize>rows * offsetof<Row>() + 4 * <usize>h.order_len, worker);
  h.order_len += 1;
}
