package arena

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"
)

// mapAnonymous maps memory that costs nothing until it is written to. Huge pages save 511 of 512 page faults of a
// value.
func mapAnonymous(size int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("arena: %d bytes of memory are not to be had: %w", size, err)
	}
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE) // some kernels have none
	return mem, nil
}

func unmapAnonymous(mem []byte) error { return unix.Munmap(mem) }

// populateStep is taken at once: a tenth of a second where the host has to find the memory too.
const populateStep = 8 << 20

// populate makes the kernel provide all of the memory, piece by piece, even while values are written to it. It gives up
// where the kernel has no call for that (before Linux 5.14).
func populate(ctx context.Context, mem []byte) {
	for len(mem) > 0 && ctx.Err() == nil {
		n := min(len(mem), populateStep)
		if unix.Madvise(mem[:n], unix.MADV_POPULATE_WRITE) != nil {
			return
		}
		mem = mem[n:]
	}
}
