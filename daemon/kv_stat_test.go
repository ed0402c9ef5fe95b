package daemon

import (
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
)

// TestCacheStatOfL2: values and bytes of L2 are of the same keys, also where another daemon has announced more.
func TestCacheStatOfL2(t *testing.T) {
	t.Parallel()
	port := fmt.Sprint(porttest.Row(t, 1)) // L2 knows no sockets
	redistest.Start(t, "--bind", "127.0.0.1", "--port", port)
	more := "[kv_cache.l2]\nenabled = true\nbackend = \"redis\"\ntimeout = \"10s\"\nurl = \"redis://127.0.0.1:" + port + "\"\n"
	a, b := newShelves(t, more), newShelves(t, more)
	row := func(s *shelves) operator.CacheTier {
		var state operator.CacheState
		if status, text := s.d.decided("/api/v1/cache", &state); status != 200 || len(state.Tiers) != 2 {
			t.Fatalf("%d %s", status, text)
		}
		return state.Tiers[1]
	}
	known := func() int {
		all, _ := b.d.kvCache.Stats()
		return all.L2.Known
	}
	n := 0
	eventually(t, "the other daemon has announced values", func() bool { a.put(n); n++; return known() > 0 })
	if r := row(b); r.Values != 0 || r.Bytes != 0 {
		t.Errorf("%d values of %d bytes in L2; want what it put there or found there", r.Values, r.Bytes)
	}
	if got := b.door.Get(t.Context(), chunkKey(0)).Val(); got != strings.Repeat("v", valueBytes) {
		t.Fatalf("GET returns %d bytes", len(got))
	}
	if r := row(b); r.Values != 1 || r.Bytes != valueBytes {
		t.Errorf("%d values of %d bytes in L2; want the one that it has read", r.Values, r.Bytes)
	}
}
