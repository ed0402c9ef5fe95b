//! Zones: workers with the label zone=ZONE first, those of others where they begin spill seconds sooner.
mod warmpath;
use warmpath::{because, Header, Ranking, Row, Setting, REASON_OWN};

static ZONE: Setting<&str> = Setting::new("");
static SPILL: Setting<f64> = Setting::new(0.25);

#[no_mangle]
pub extern "C" fn wp_configure(len: u32) -> i32 {
    warmpath::configure(len, |o| {
        ZONE.set(o.text("zone", ""));
        SPILL.set(o.number("spill", 0.25));
    })
}

#[no_mangle]
pub extern "C" fn wp_reasons() -> i32 {
    warmpath::named(&["in the zone", "spilt to another zone"])
}

pub fn route(r: &mut Header, workers: &[Row]) -> u64 {
    let near = r.labeled("zone", ZONE.get());
    let mut k = Ranking::default();
    for (i, w) in workers.iter().enumerate() {
        let mut cost = r.ttft(w) + 0.01 * w.in_flight as f64;
        if w.labels & near == 0 {
            cost += SPILL.get();
        }
        k.enter(i, w, cost);
    }
    let spilt = k.best[0].1.labels & near == 0;
    because(k.choose(r), REASON_OWN + spilt as u16)
}
