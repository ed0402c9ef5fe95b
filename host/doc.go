// Package host is the sandbox: strategies as WebAssembly modules on wazero, which is imported here and nowhere else.
package host
