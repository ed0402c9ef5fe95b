mod warmpath;
use warmpath::*;

static SCALE: Setting<f64> = Setting::new(2.0);
static ZONE: Setting<&str> = Setting::new("b");

#[no_mangle]
pub extern "C" fn wp_configure(len: u32) -> i32 {
    configure(len, |o| {
        SCALE.set(o.number("scale", 2.0));
        ZONE.set(o.text("zone", "b"));
    })
}

#[no_mangle]
pub extern "C" fn wp_reasons() -> i32 {
    named(&["asked", "ranked"])
}

#[no_mangle]
pub extern "C" fn wp_wants() -> u32 {
    WANT_PAIR | WANT_CLASSIFY | WANT_FILTER | WANT_PLAN | WANT_FIRST_TOKEN | WANT_COMPLETE | WANT_KV_EVENTS
}

fn number(text: &str) -> f64 {
    (hash(text) >> 11) as f64
}

fn values(r: &Header, w: &[Row]) -> Vec<f64> {
    let chance = (0..100).filter(|_| r.chance(0.3)).count();
    vec![
        SCALE.get(), r.ttft(&w[1]), r.prefill(&w[2]), w[1].matched() as f64, w[3].adapter_load(),
        r.labeled("zone", ZONE.get()) as f64, r.labeled("zone", "none") as f64, number(&r.label(&w[2], "zone")),
        number(&r.label(&w[0], "zone")), number("acme"), number(""), place(r.session, &w[1]), place(hash(&caller()), &w[4]),
        place(7, &w[5]), number(&header("x-tier")), number(&header("x-none")), number(&session()), number(&model()),
        number(&tenant()), number(&worker_id(2)), chance as f64, r.pick(1000) as f64, r.pick(7) as f64, r.pick(0) as f64,
    ]
}

pub fn route(r: &mut Header, workers: &[Row]) -> u64 {
    if workers.len() < 30 {
        return to(DECLINE, 0);
    }
    match r.seq {
        0 => {
            for (w, value) in workers.iter().zip(values(r, workers)) {
                set_own(w.key, value);
            }
            count("asked", 1.5);
        }
        1 => {
            let mut k = Ranking::default();
            for (i, w) in workers.iter().enumerate() {
                k.enter(i, w, if i % 5 == 0 { f64::NAN } else { r.ttft(w).trunc() });
            }
            return only(bind(because(k.choose(r), REASON_OWN + 1)));
        }
        2 => return because(r.reject(451, "not here", 7), REASON_OWN),
        3 => return r.unavailable(&"n".repeat(300)),
        4 => return r.hold(0.25),
        5 => return r.pair(1, workers.len() - 1),
        6 => (0..100_000).for_each(|i| then(r, i % workers.len() as u32)),
        _ => {}
    }
    to(0, REASON_OWN)
}

#[no_mangle]
pub extern "C" fn wp_filter() -> u64 {
    filter(|r, workers| {
        let own = r.labeled("zone", ZONE.get());
        match r.seq {
            1 => because(r.keep(workers, |_, w| w.labels & own != 0), REASON_OWN),
            2 => r.keep(workers, |r, w| r.label(w, "tier") == "none"),
            3 => r.reject(403, "no licence", 0),
            _ => to(DECLINE, 0),
        }
    })
}

#[no_mangle]
pub extern "C" fn wp_classify() -> u64 {
    if request().labeled("zone", ZONE.get()) != 0 {
        return class_of(7, 1.0);
    }
    if header("x-tier") == "gold" { class_of(3, 0.5) } else { class_of(-2, 0.0) }
}

#[no_mangle]
pub extern "C" fn wp_on_first_token(n: u32) {
    for o in outcomes(n) {
        set_own(o.key, get_own(o.key) + o.ttft as f64);
    }
}

#[no_mangle]
pub extern "C" fn wp_on_complete(n: u32) {
    for o in outcomes(n) {
        set_own(o.key, o.output_tokens as f64);
    }
}

#[no_mangle]
pub extern "C" fn wp_on_kv_event(n: u32) {
    for e in events(n) {
        set_own(e.key, (1000 * e.kind + e.tokens) as f64);
    }
}

#[no_mangle]
pub extern "C" fn wp_plan(n: u32) {
    for t in talks(n) {
        t.value = t.gap as f64 * t.tokens as f64 - t.seconds as f64;
    }
}
