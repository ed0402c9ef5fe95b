//go:build unix

package host

import (
	"syscall"

	"github.com/tetratelabs/wazero/experimental"
)

// mapped is the memory of one instance, as large as it may become. It is outside of Go's heap, which would count the
// room that is reserved, and not what is used: the collector and GOMEMLIMIT go by that.
type mapped []byte

// reserve makes a memory of so many bytes at most. Where the system gives no room, it is Go's.
func reserve(_, most uint64) experimental.LinearMemory {
	room, err := syscall.Mmap(-1, 0, int(most), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return heap(make([]byte, most))
	}
	return mapped(room)
}

func (m mapped) Reallocate(size uint64) []byte { return m[:size] }

func (m mapped) Free() { _ = syscall.Munmap(m) }
