package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// sizes are those of values: LMCache's metadata, what takes slots, pages, and several pieces of the arena.
var sizes = []int{64, 64, 700, 5000, 40_000, 70_000, 300_000, 1 << 20, 1<<20 + 28, 4 << 20}

// sizeOf is the size of a version: what is read must have that too.
func sizeOf(key string, version int) int { return sizes[seed(key, version)%uint64(len(sizes))] }

func seed(key string, version int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\n%d", key, version)
	return h.Sum64() | 1
}

// value makes the bytes of a version: who they are, then a sequence that no other version has.
func value(key string, version int) []byte {
	b := make([]byte, sizeOf(key, version))
	n := copy(b, fmt.Sprintf("%s\n%d\n", key, version))
	x := seed(key, version)
	for ; n+8 <= len(b); n += 8 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(b[n:], x)
	}
	return b
}

// check returns the version that the bytes are, all of them.
func check(key string, got []byte) (version int, err error) {
	var said string
	if _, err := fmt.Sscanf(string(got[:min(len(got), 64)]), "%s\n%d\n", &said, &version); err != nil || said != key {
		return 0, fmt.Errorf("%s has the value of another key, or none: it begins with %.40q", key, got)
	}
	want := value(key, version)
	if len(got) != len(want) {
		return 0, fmt.Errorf("%s has %d bytes; version %d has %d", key, len(got), version, len(want))
	}
	if !bytes.Equal(got, want) {
		at := 0
		for got[at] == want[at] {
			at++
		}
		return 0, fmt.Errorf("%s, version %d, has other bytes from %d of %d on", key, version, at, len(want))
	}
	return version, nil
}

// history is what may be read under one key, whose only writer is the player that has it.
type history struct {
	sent  int // versions that a put began for
	least int // an older one must not be read
}

func (h *history) allows(version int) bool { return version >= h.least && version <= h.sent }
