// Package abi is the contract between the warmpath host and a strategy module, stated once.
//
// A strategy is a core WebAssembly module (MVP plus bulk memory, sign extension, mutable globals and saturating float
// conversion). It owns its memory. The host asks it once for the address of a [Frame area], writes one request into
// that area before every pick, and calls wp_pick. All numbers are little-endian; addresses are 32-bit offsets into the
// guest's memory.
//
// # Frame area
//
// wp_frame(max_workers) returns the address, 8-byte aligned, of an area the guest keeps alive until it is asked again:
//
//	offset 0                                 Header   HeaderSize bytes
//	offset HeaderSize                        rows     max_workers * RowSize bytes, one Row a candidate worker
//	offset HeaderSize+max_workers*RowSize    order    max_workers * 4 bytes, u32 row indexes written by the guest
//
// The fields and their offsets are the struct declarations of [Header] and [Row]: their Go layout is the wire layout,
// and a test compares each offset with its comment. docs/abi.md has worked values.
//
// Three requests sent to a worker 0, 30 and 60 s ago make Row.Lately 1 + .368 + .135 = 1.503; two of 1.229 s of prefill
// that wait for their first byte make Pending 2.458, and so they do on a worker of slowness 8, whose Wait is up to
// 19.7. A pool whose labels are pool=a, tier=batch and tier=live has Header.Labels 3 and gives a worker of tier=live in
// pool=a the Labels 0b101.
//
// # Decision
//
// wp_pick returns an i64: the low 32 bits are the index of the chosen row as i32, or [Decline] (the host's fallback
// answers), [Reject] (the client is turned away) or [Hold] (it waits for a better worker). Bits 32-47 are a reason code
// of the strategy's own, bits 48-63 are flags ([FlagBind], [FlagOnly]). Worked values: row 3, reason 7, no flags =
// 0x0000_0007_0000_0003; row 0, reason 1, FlagBind = 0x0001_0001_0000_0000; decline = 0x0000_0000_ffff_ffff; reject =
// 0x0000_0000_ffff_fffe.
//
// The guest may write alternatives for failover, best first and without the chosen row, to the order area and their
// number to Header.OrderLen. The host ignores indexes out of range and repeats, and unless FlagOnly is set appends the
// rows that are missing.
//
// With Reject the guest may write what the client gets: RejectStatus, RetryAfter, and the address and length of a text.
// All zero means 429, the host's words and its own estimate of when to come again.
//
// # Filters
//
// wp_filter comes before a wp_pick and reads the same frame. The low 32 bits of its answer are the number of rows
// that it has written to the order area, [Decline] (all stay) or [Reject]. Two rows, reason 7 = 0x0000_0007_0000_0002.
//
// # Versions
//
// A module exports one marker, "warmpath_abi_1_3", which names the minor version it was made for. The host writes it
// the layout of that version ([Layouts]), looks at no export of a later one, and gives it whatever it imports. So a
// module runs unchanged under every later host of the same major version, and an older host refuses it by the name of
// its marker.
//
// The rule for 1.4: no field moves, changes its type or its meaning. A new one takes a bit that is zero today, or is
// appended, which makes a layout of its own with a marker of its own. Older layouts are beginnings of newer ones, so
// that the host has one struct to fill, and copies it whole to a module of its own version and row by row to an older
// one. New exports are optional, new imports may be missing in an older host. What cannot be done so is 2.0.
//
// why.md: what each version brought.
package abi
