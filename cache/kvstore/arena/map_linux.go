package arena

import (
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
