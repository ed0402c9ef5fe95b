package hugepages

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	between = 10 * time.Second     // looks at the heap
	pause   = 2 * time.Millisecond // after a call: who touches the stretch meanwhile waits for a part of a millisecond
	sizeIn  = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"
)

// Run asks for huge pages every ten seconds until ctx ends, as the heap grows. It returns at once where the kernel has
// none.
func Run(ctx context.Context) {
	size, err := pageSize()
	if err != nil {
		return
	}
	h := heap{size: size, asked: map[uintptr]struct{}{}}
	every := time.NewTicker(between)
	defer every.Stop()
	for {
		from, to, err := goHeap()
		if err != nil || h.ask(ctx, from, to) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
	}
}

// pageSize returns the bytes of a huge page.
func pageSize() (uintptr, error) {
	text, err := os.ReadFile(sizeIn)
	if err != nil {
		return 0, err
	}
	size, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 32)
	if err == nil && (size == 0 || size%uint64(os.Getpagesize()) != 0) {
		err = fmt.Errorf("hugepages: %s: %d is no size of pages of %d", sizeIn, size, os.Getpagesize())
	}
	return uintptr(size), err
}

// heap is the Go heap of this process.
type heap struct {
	size  uintptr              // of a huge page
	asked map[uintptr]struct{} // the stretches that have a huge page, by their first address
}

// ask asks for a huge page for each stretch from one address to another that is in memory as a whole. It returns an
// error if the kernel cannot do that at all.
func (h *heap) ask(ctx context.Context, from, to uintptr) error {
	for at := (from + h.size - 1) / h.size * h.size; at+h.size <= to && ctx.Err() == nil; at += h.size {
		if _, done := h.asked[at]; done || !present(at, h.size) {
			continue
		}
		err := collapse(at, h.size)
		switch {
		case err == nil:
			h.asked[at] = struct{}{}
		case errors.Is(err, unix.ENOMEM): // no huge page is free
			return nil
		case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EPERM):
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// goHeap returns the bounds of the mapping that holds the Go heap.
func goHeap() (from, to uintptr, err error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, 0, err
	}
	defer maps.Close()
	return mapping(maps, uintptr(unsafe.Pointer(unsafe.SliceData(make([]byte, 64<<10))))) // no stack has room for it
}

// mapping returns the bounds of the mapping that holds an address, of those in maps.
func mapping(maps io.Reader, address uintptr) (from, to uintptr, err error) {
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x ", &from, &to); err != nil {
			return 0, 0, fmt.Errorf("hugepages: /proc/self/maps: %q: %w", lines.Text(), err)
		}
		if from <= address && address < to {
			return from, to, nil
		}
	}
	if err := lines.Err(); err != nil {
		return 0, 0, err
	}
	return 0, 0, fmt.Errorf("hugepages: /proc/self/maps has no mapping of %x", address)
}

// present reports whether all pages of a stretch are in memory.
func present(at, size uintptr) bool {
	pages := make([]byte, size/uintptr(os.Getpagesize()))
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, at, size, uintptr(unsafe.Pointer(unsafe.SliceData(pages))))
	for _, p := range pages {
		if p&1 == 0 {
			return false
		}
	}
	return errno == 0
}

// collapse has the kernel move a stretch into a huge page. It keeps its contents and its address.
func collapse(at, size uintptr) error {
	_, _, errno := unix.Syscall(unix.SYS_MADVISE, at, size, unix.MADV_COLLAPSE)
	if errno != 0 {
		return errno
	}
	return nil
}
