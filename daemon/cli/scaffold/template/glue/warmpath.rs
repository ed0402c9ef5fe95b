// The frame of a strategy, and what connects it to the host: warmpath's ABI 1.2. "warmpath plugin new" wrote this file; a
// later version of warmpath still runs what is built with it. The whole contract: docs/abi.md of warmpath
#![allow(dead_code)]

@STRUCTURES@
/// In place of a worker: the host's fallback answers; the client is turned away, see reject_status; the request waits for a
/// better one, see hold_millis.
pub const DECLINE: i32 = -1;
pub const REJECT: i32 = -2;
pub const HOLD: i32 = -3;

/// The answer: a worker's index, DECLINE, REJECT or HOLD, and a reason: 0, or a code of your own, which people see as its number,
/// or by the name that the export wp_reasons gives it.
pub fn to(worker: i32, reason: u16) -> u64 {
    (reason as u64) << 32 | worker as u32 as u64
}

/// Keeps the request to the worker of an answer and those of then: nobody else gets it, whatever fails.
pub fn only(answer: u64) -> u64 {
    answer | 2 << 48
}

/// Names the next alternative, for the case that the chosen worker fails. The host adds those not named, unless the answer says only. The native test
/// sees how many there are.
pub fn then(request: &mut Header, worker: u32) {
    #[cfg(target_arch = "wasm32")]
    guest::put(request.order_len, worker);
    #[cfg(not(target_arch = "wasm32"))]
    let _ = worker;
    request.order_len += 1;
}

// own sets the strategy's own number for the worker of that key, which all its instances then read as own of the row; from a
// callback own_of reads it.
#[cfg(target_arch = "wasm32")]
#[link(wasm_import_module = "warmpath_v1")]
extern "C" {
    pub fn own(key: u64, value: f64) -> i32;
    pub fn own_of(key: u64) -> f64;
}

#[cfg(target_arch = "wasm32")]
mod guest {
    use super::{to, Header, Row, DECLINE};
    use core::ptr::addr_of_mut;

    const MAX_WORKERS: usize = 4096;

    #[repr(C)]
    struct Area {
        header: Header,
        rows: [Row; MAX_WORKERS],
        order: [u32; MAX_WORKERS],
    }

    // The host calls one export of an instance at a time.
    static mut AREA: core::mem::MaybeUninit<Area> = core::mem::MaybeUninit::zeroed();
    static mut ROWS: u32 = 0;

    #[no_mangle]
    pub extern "C" fn warmpath_abi_1_2() {}

    #[no_mangle]
    pub extern "C" fn wp_frame(max_workers: u32) -> u32 {
        if max_workers as usize > MAX_WORKERS {
            core::arch::wasm32::unreachable();
        }
        unsafe { ROWS = max_workers };
        addr_of_mut!(AREA) as u32
    }

    /// Writes an entry of the order area, which stands behind the rows that wp_frame was asked for.
    pub fn put(at: u32, worker: u32) {
        unsafe {
            if at < ROWS {
                let order = (addr_of_mut!((*(addr_of_mut!(AREA) as *mut Area)).rows) as *mut Row).add(ROWS as usize);
                (order as *mut u32).add(at as usize).write(worker);
            }
        }
    }

    #[no_mangle]
    pub extern "C" fn wp_pick() -> u64 {
        unsafe {
            let area = addr_of_mut!(AREA) as *mut Area;
            let header = &mut (*area).header;
            if header.rows == 0 || header.rows > ROWS {
                return to(DECLINE, 0);
            }
            let rows = core::ptr::addr_of!((*area).rows) as *const Row;
            crate::route(header, core::slice::from_raw_parts(rows, header.rows as usize))
        }
    }
}
