//go:build !unix

package host

import "github.com/tetratelabs/wazero/experimental"

// reserve makes a memory of so many bytes at most.
func reserve(_, most uint64) experimental.LinearMemory { return heap(make([]byte, most)) }
