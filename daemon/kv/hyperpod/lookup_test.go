package hyperpod

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// hanging is a tier behind with one known key, for which its server does not answer.
type hanging struct{ asked, gets atomic.Int64 }

func (h *hanging) Exists(key string, _ time.Time) bool { h.asked.Add(1); return key == "h\x01bknown" }

func (h *hanging) Get(ctx context.Context, _ string, _ kvstore.Place) (bool, error) {
	h.gets.Add(1)
	select {
	case <-ctx.Done():
	case <-time.After(3 * time.Second):
	}
	return false, nil
}

func (h *hanging) Put(string, time.Time, *kvstore.Lease) (<-chan struct{}, bool) { return nil, false }
func (h *hanging) Delete(string) bool                                            { return false }

// TestLookups: a lease of a value that L2 is not known to have is a miss at once, without a request to a server. A
// lease of one that L2 has waits as long as the worker does.
func TestLookups(t *testing.T) {
	far := &hanging{}
	_, _, w := serveOver(t, 16<<20, far)
	start := time.Now()
	for range 10 {
		if status, _ := w.do("POST", "/v1/kv/b/unknown/leases?timeout_ms=5000&ttl_s=30.0", nil); status != 404 {
			t.Errorf("a lease of an unknown key answers %d; want 404", status)
		}
	}
	if n := far.gets.Load(); n != 0 || far.asked.Load() == 0 || time.Since(start) > time.Second {
		t.Errorf("ten misses took %s and %d reads of the servers", time.Since(start), n)
	}
	start = time.Now()
	status, _ := w.do("POST", "/v1/kv/b/known/leases?timeout_ms=200&ttl_s=30.0", nil)
	if took := time.Since(start); status != 404 || far.gets.Load() != 1 || took < 200*time.Millisecond || took > 2*time.Second {
		t.Errorf("a lease of what does not come answers %d after %s, %d reads; want 404 after 200 ms", status, took,
			far.gets.Load())
	}
}

// distant is a tier behind whose values memory need not keep, as with promote = "never".
type distant struct {
	hanging
	value []byte
}

func (d *distant) Exists(string, time.Time) bool { return true }

func (d *distant) Get(_ context.Context, _ string, place kvstore.Place) (bool, error) {
	d.gets.Add(1)
	pieces, err := place(kvstore.Arrival{Size: int64(len(d.value)), Passing: true})
	if err != nil {
		return false, err
	}
	rest := d.value
	for _, p := range pieces {
		rest = rest[copy(p, rest):]
	}
	return true, nil
}

// TestLookupThenRead: a read behind a lookup does not fetch the value again. Values that were looked up and not read
// take a bounded part of the memory, for a few seconds.
func TestLookupThenRead(t *testing.T) {
	far := &distant{value: bytes.Repeat([]byte{3}, 1<<20)}
	_, store, w := serveOver(t, 32<<20, far)
	for range 2 { // LMCache's lookup, and its read
		id, got := w.lease("/v1/kv/b/k")
		if !bytes.Equal(got, far.value) {
			t.Fatalf("a lease shows %d bytes", len(got))
		}
		w.do("POST", "/v1/leases/"+id+"/release", nil)
	}
	if n := far.gets.Load(); n != 1 {
		t.Errorf("a lookup and a read fetched the value %d times; want once", n)
	}
	for i := range 20 {
		id, _ := w.lease(fmt.Sprint("/v1/kv/b/", i))
		w.do("POST", "/v1/leases/"+id+"/release", nil)
	}
	if n := store.Stats().Entries; n < 1 || n > 4 {
		t.Errorf("%d values of 1 MiB stay in 32 MiB after their lookups; want 4 at most", n)
	}
}
