// Package meter makes a WebAssembly module pay fuel as it runs, by rewriting its binary.
//
// [Rewrite] appends one mutable i64 global, exported as [Global], and puts a charge in front of every function body, behind
// every loop header, and in front of every instruction whose time depends on a size: take the price from the global, trap
// (unreachable) below zero. Nothing else moves: functions, types, tables and locals keep their indexes. A standard Go
// guest of 1.8 MB grows by 2 % and is rewritten in 20-50 ms. The host sets the global before each call.
//
// # Prices
//
//	function entry          1 + its instructions outside of loops / 32
//	turn of a loop          1 + the instructions of its body outside of inner loops / 32
//	local or parameter      1, at entry
//	division, square root   2
//	memory.fill, copy, init 1 for each 16 bytes, and 3
//	table operations        1 for each 2 elements, and 3
//	memory.grow             1,024 a page, and 3
//
// A charge of 1 at each header alone was tried: it costs the same to execute, but a loop of 400 dependent square roots
// ran 2.3 s on a million fuel where an empty loop ran 2.4 ms. Priced by its length and its slow instructions it runs 2.5 ms:
// 1 fuel is then 1-3 ns of whatever a module does. Both arms of an if are priced: a charge for each basic block would be exact and slower.
//
// # Why is the original not compiled first?
//
// A module could name the global that is appended, and refill itself: invalid before, valid after. Compiling the original
// too would refuse it, for 0.3 s of a cold start (0.27 s on the interpreter, at every start, cold or warm). Instead every
// local and global index is compared with the original's counts, in code, exports and initialisers. Since charges leave
// the stack as they find it, the result is then valid exactly when the original is; FuzzRewrite holds that.
//
// # What is refused?
//
// Whatever has no price here, by name: SIMD, threads, exceptions, tail calls (a loop without a header), typed references,
// garbage collected types, several memories, imports that are no functions. Bounds on counts keep a small file from asking
// for much: a declared memory or table maximum is lowered to the limit.
package meter
