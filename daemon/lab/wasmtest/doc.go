// Package wasmtest assembles small WebAssembly modules from text, so that a test can hold a module that no compiler
// would make: one commented .wat file a failure, in testdata/modules.
//
// It reads a subset of the text format that wabt's wat2wasm reads too: plain (unfolded) instructions, named or numbered
// functions, locals, globals and labels. Why an own assembler: the tests must run where there is only a Go toolchain,
// wat2wasm is a C++ program, and binaries do not belong into git. What it lacks: folded expressions, type uses, more
// than one memory, passive element segments.
package wasmtest
