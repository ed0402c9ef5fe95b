// Package scaffold makes the project of a new strategy, in Go, C, AssemblyScript or Rust, and builds and tests it.
//
// A project is complete: a strategy of some 20 lines, a native test, what its language needs to build it, and a README.
// It builds on a machine that has the binary and the language's own toolchain, and nothing else: a Go project carries
// a copy of the SDK (sdk.Source) that its go.mod points to; the others carry the frame's layout as a header or module
// of their language, made from the source of sdk/abi with its comments (layout.go). So no table of offsets is kept
// beside sdk/abi, and none can be wrong.
//
// project.go writes it, toolchain.go builds and tests it, layout.go writes the layouts.
package scaffold
