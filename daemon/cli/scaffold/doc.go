// Package scaffold makes the project of a new strategy, in Go, C, AssemblyScript, Rust or Zig, and builds and tests it.
//
// A project is complete: a strategy of some 20 lines, or one that learns from answers, a native test, what its
// language needs to build it, and a README. It builds on a machine that has the binary and the language's own
// toolchain, and nothing else: a Go project carries a copy of the SDK (sdk.Source) that its go.mod points to; the
// others carry the contract with the host as a header or module of their language, contract/warmpath.*, which go
// generate writes from sdk/abi with its comments: no offset is written by hand. A test in testdata/contract fails
// when they are stale. Their helpers are those of the SDK, and TestAlike holds one program in five languages to the
// same answers.
//
// project.go writes it, toolchain.go builds and tests it.
package scaffold
