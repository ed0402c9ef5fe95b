// Package meter makes a WebAssembly module pay fuel as it runs, by rewriting its binary.
//
// [Rewrite] appends one mutable i64 global, exported as [Global], and one import, [Refill]. It puts a charge at the
// start of every function body and of every turn of a loop, within long code, and in front of every instruction whose
// time depends on a size: take the price from the global, call the import below zero. Loops get an outer loop that
// makes the call (scan.go has the reason), and labels that cross it count one more. The import comes before all own
// functions, so that the first of these becomes the last. Nothing else moves: other functions, types, tables and locals
// keep their indexes. The host sets the global before each call.
//
// # Prices
//
// In 1/256 of fuel, beside 1 fuel for each charge:
//
//	plain instruction       1
//	global, table.get, set  2
//	call                    8
//	br_table, float         16    20 ns if not foreseen; 50 ns with denormals where the processor is slow with them
//	store, load             24, 48  100 ns from memory that is in no cache
//	division, square root   64
//	local or parameter      256, at entry
//	byte of a function      1, at entry; the more of this and of what else the entry pays for
//	ref.func                512   leaves the compiled code
//	memory.fill, copy, init 512, and 1 fuel for each 16 bytes
//	table operations        512, and 1 fuel for each 2 elements
//	memory.grow             512, and 1,024 fuel a page
//
// TestPrices times each of these in a loop: 1 fuel is at most 0.8 us on a quiet machine, of loads that wait for each
// other, and some 0.5 ns of usual code. That factor is why there is a clock beside fuel. Both arms of an if are priced:
// a charge for each basic block would be exact and slower.
//
// # What is refused?
//
// Whatever has no price here, by name: SIMD, threads, exceptions, tail calls (a loop without a header), typed
// references, garbage collected types, several memories, imports that are no functions. Bounds on counts keep a small
// file from asking for much: a declared memory or table maximum is lowered to the limit. A function that
// would take over 10 s to compile is refused by an estimate of bytes, branches, locals and accesses (bounds.go;
// TestCompileWork holds it against the compiler). A whole module is measured instead, by package host.
//
// why.md has the reasons and the details, and what lost.
package meter
