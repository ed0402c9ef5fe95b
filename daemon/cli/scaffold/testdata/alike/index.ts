import {
  Header, Options, DECLINE, REASON_OWN, WANT_PAIR, WANT_CLASSIFY, WANT_FILTER, WANT_PLAN, WANT_FIRST_TOKEN, WANT_COMPLETE, WANT_KV_EVENTS, request,
  worker, to, because, bind, only, then, kept, ranking, class_of, hash, place, header, session, model, tenant, caller, worker_id, own, own_of,
  outcomes, events, talks, count, named,
} from "./warmpath";
export { warmpath_abi_1_3, wp_frame } from "./warmpath";

let scale: f64 = 2, zone = "b";

export function wp_configure(len: u32): i32 {
  const o = new Options(len);
  scale = o.number("scale", 2);
  zone = o.text("zone", "b");
  return o.done();
}

export function wp_reasons(): i32 {
  return named(["asked", "ranked"]);
}

export function wp_wants(): u32 {
  return WANT_PAIR | WANT_CLASSIFY | WANT_FILTER | WANT_PLAN | WANT_FIRST_TOKEN | WANT_COMPLETE | WANT_KV_EVENTS;
}

function number(text: string): f64 {
  return <f64>(hash(text) >> 11);
}

function values(r: Header): f64[] {
  let chance: f64 = 0;
  for (let i = 0; i < 100; i++) if (r.chance(0.3)) chance++;
  return [
    scale, r.ttft(worker(1)), r.prefill(worker(2)), <f64>worker(1).matched(), worker(3).adapter_load(),
    <f64>r.labeled("zone", zone), <f64>r.labeled("zone", "none"), number(r.label(worker(2), "zone")),
    number(r.label(worker(0), "zone")), number("acme"), number(""), place(r.session, worker(1)),
    place(hash(caller()), worker(4)), place(7, worker(5)), number(header("x-tier")), number(header("x-none")),
    number(session()), number(model()), number(tenant()), number(worker_id(2)), chance, <f64>r.pick(1000), <f64>r.pick(7),
    <f64>r.pick(0),
  ];
}

export function wp_pick(): u64 {
  const r = request();
  if (r.rows < 30) return to(DECLINE, 0);
  if (r.seq == 0) {
    const all = values(r);
    for (let i = 0; i < all.length; i++) own(worker(i).key, all[i]);
    count("asked", 1.5);
  } else if (r.seq == 1) {
    const k = ranking();
    for (let i: u32 = 0; i < r.rows; i++) k.enter(i, i % 5 == 0 ? NaN : Math.trunc(r.ttft(worker(i))));
    return only(bind(because(k.choose(), REASON_OWN + 1)));
  } else if (r.seq == 2) return because(r.reject(451, "not here", 7), REASON_OWN);
  else if (r.seq == 3) return r.unavailable("n".repeat(300));
  else if (r.seq == 4) return r.hold(0.25);
  else if (r.seq == 5) return r.pair(1, r.rows - 1);
  else if (r.seq == 6) {
    for (let i: u32 = 0; i < 100000; i++) then(i % r.rows);
  }
  return to(0, REASON_OWN);
}

export function wp_filter(): u64 {
  const r = request(), own = r.labeled("zone", zone);
  if (r.seq == 1) {
    for (let i: u32 = 0; i < r.rows; i++) if ((worker(i).labels & own) != 0) then(i);
    return because(kept(), REASON_OWN);
  } else if (r.seq == 2) {
    for (let i: u32 = 0; i < r.rows; i++) if (r.label(worker(i), "tier") == "none") then(i);
    return kept();
  } else if (r.seq == 3) return r.reject(403, "no licence", 0);
  return to(DECLINE, 0);
}

export function wp_classify(): u64 {
  if (request().labeled("zone", zone) != 0) return class_of(7, 1);
  return header("x-tier") == "gold" ? class_of(3, 0.5) : class_of(-2, 0);
}

export function wp_on_first_token(n: u32): void {
  const all = outcomes(n);
  for (let i = 0; i < all.length; i++) own(all[i].key, own_of(all[i].key) + all[i].ttft);
}

export function wp_on_complete(n: u32): void {
  const all = outcomes(n);
  for (let i = 0; i < all.length; i++) own(all[i].key, all[i].output_tokens);
}

export function wp_on_kv_event(n: u32): void {
  const all = events(n);
  for (let i = 0; i < all.length; i++) own(all[i].key, <f64>(1000 * all[i].kind + all[i].tokens));
}

export function wp_plan(n: u32): void {
  const all = talks(n);
  for (let i = 0; i < all.length; i++) all[i].value = <f64>all[i].gap * <f64>all[i].tokens - <f64>all[i].seconds;
}
