// Package meter makes a WebAssembly module pay fuel as it runs, by rewriting its binary.
package meter
