package kvstore

import (
	"fmt"
	"testing"
	"time"
)

func half(n int, of string) string { return fmt.Sprintf("r\x00org/model@1@0@%016x@bfloat16%s", n, of) }

// TestHalves: a chunk under two keys is promised, evicted and found as one.
func TestHalves(t *testing.T) {
	s := open(t, Config{MaxBytes: 64 << 20})
	chunk := func(n int) {
		must(t, put(s, half(n, "kv_bytes"), "k", 1<<20, Terms{}))
		must(t, put(s, half(n, "metadata"), "m", 28, Terms{}))
	}
	there := func(key string) bool { return s.memory.find(key, time.Now()) != nil }
	for n := range 40 {
		chunk(n)
		if !s.Exists(half(n, "metadata"), alice, time.Minute) {
			t.Fatalf("chunk %d is not there", n)
		}
	}
	for n := 100; n < 160; n++ {
		chunk(n)
	}
	kept := 0
	for n := range 40 {
		switch m, b := there(half(n, "metadata")), there(half(n, "kv_bytes")); {
		case m != b:
			t.Errorf("chunk %d: metadata %v, bytes %v", n, m, b)
		case m:
			kept++
		}
		if found := s.Exists(half(n, "metadata"), alice, 0); found != there(half(n, "kv_bytes")) {
			t.Errorf("chunk %d is found: %v", n, found)
		}
	}
	if kept < 14 {
		t.Errorf("%d of the promised chunks are kept; want those of a quarter of the memory", kept)
	}
	s.Delete(half(0, "kv_bytes"))
	if s.Exists(half(0, "metadata"), alice, 0) {
		t.Error("metadata is found whose bytes were deleted")
	}
}

// TestHalfRead: a client that has read the metadata still has the promise of the bytes.
func TestHalfRead(t *testing.T) {
	s := open(t, Config{MaxBytes: 16 << 20})
	must(t, put(s, half(1, "kv_bytes"), "k", 1<<20, Terms{}))
	must(t, put(s, half(1, "metadata"), "m", 28, Terms{}))
	s.Exists(half(1, "metadata"), alice, time.Minute)
	s.Get(t.Context(), half(1, "metadata"), alice).Release()
	for n := range 40 {
		must(t, put(s, fmt.Sprint("flood", n), "x", 1<<20, Terms{}))
	}
	l := s.Get(t.Context(), half(1, "kv_bytes"), alice)
	if l == nil {
		t.Fatal("the bytes are gone")
	}
	l.Release()
	for n := range 40 {
		must(t, put(s, fmt.Sprint("flood", n), "x", 1<<20, Terms{}))
	}
	if n := s.Stats(); s.Exists(half(1, "metadata"), alice, 0) || n.Pins != 0 {
		t.Errorf("it stays after both were read: %+v", n)
	}
}

// TestNoHalves: a client's own names that end alike are found one by one.
func TestNoHalves(t *testing.T) {
	s := open(t, Config{})
	for _, key := range []string{"r\x00notes.metadata", "r\x00metadata", "r\x00a@b@kv_bytes"} {
		must(t, put(s, key, "x", 10, Terms{}))
		if !s.Exists(key, alice, time.Minute) {
			t.Errorf("%q is not found", key)
		}
	}
}
