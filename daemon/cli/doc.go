// Package cli is the wing of the command line: a file for each command of warmpath, and main.go, which reads the line.
// lab, sim and replay are in daemon/lab/commands.
//
//	scaffold  `warmpath plugin new`: the project of a strategy in Go, C, AssemblyScript, Rust or Zig
//	redecide  `warmpath plugin run --records`: decisions of an access log, decided again by a strategy
//
// cobra reads the command line: the best kept library for it in Go (Apache-2.0), and the one whose help and completion
// operators know from kubectl. golang.org/x/term says how large a terminal is.
package cli
