// Package abi is the contract between the warmpath host and a strategy module, stated once.
//
// A strategy is a core WebAssembly module (MVP plus bulk memory, sign extension, mutable globals and saturating float
// conversion). It owns its memory. The host asks it once for the address of a [Frame area], writes one request into that
// area before every pick, and calls wp_pick. All numbers are little-endian; addresses are 32-bit offsets into the guest's
// memory.
//
// # Frame area
//
// wp_frame(max_workers) returns the address, 8-byte aligned, of an area the guest keeps alive until it is asked again:
//
//	offset 0                     Header   HeaderSize (128) bytes
//	offset 128                   rows     max_workers * RowSize (128) bytes, one Row a candidate worker
//	offset 128+128*max_workers   order    max_workers * 4 bytes, u32 row indexes written by the guest
//
// Sizes stand in the header too (HeaderBytes, RowBytes), so that a later minor version may append fields; a guest reads
// rows at RowBytes apart. The fields and their offsets are the struct declarations of [Header] and [Row]: their Go layout
// is the wire layout, and a test holds each offset.
//
// 1.1 put Row.Lately (f32 at 120) and Row.Pending (f32 at 124) where 1.0 had zeros; strides and all else are as before, so a
// module made for either runs under either. Worked values: three requests sent to a worker 0, 30 and 60 s ago make Lately
// 1 + .368 + .135 = 1.503; two of 1.229 s of prefill that wait for their first byte make Pending 2.458, and so they do on a
// worker of slowness 8, whose Wait is up to 19.7.
//
// # Decision
//
// wp_pick returns an i64: the low 32 bits are the index of the chosen row as i32, or [Decline] (the host's fallback
// answers) or [Reject] (the client gets 429 with Retry-After). Bits 32-47 are a reason code of the strategy's own, bits
// 48-63 are flags ([FlagBind]). Worked values: row 3, reason 7, no flags = 0x0000_0007_0000_0003; row 0, reason 1,
// FlagBind = 0x0001_0001_0000_0000; decline = 0x0000_0000_ffff_ffff; reject = 0x0000_0000_ffff_fffe.
//
// The guest may write alternatives for failover, best first and without the chosen row, to the order area and their
// number to Header.OrderLen. The host ignores indexes out of range and repeats, and appends the rows that are missing.
package abi
