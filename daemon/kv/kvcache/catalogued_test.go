package kvcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// server is a tier behind that holds texts.
type server map[string]string

func (s server) Exists(key string, _ time.Time) bool { return s[key] != "" }
func (s server) Delete(key string) bool              { was := s[key] != ""; delete(s, key); return was }

func (s server) Get(_ context.Context, key string, place kvstore.Place) (bool, error) {
	switch s[key] {
	case "":
		return false, nil
	case "broken":
		return false, errors.New("the server is gone")
	}
	pieces, err := place(kvstore.Arrival{Size: int64(len(s[key]))})
	if err != nil {
		return false, err
	}
	copy(pieces[0], s[key])
	return true, nil
}

func (s server) Put(key string, _ time.Time, v *kvstore.Lease) (<-chan struct{}, bool) {
	s[key] = string(bytes.Join(v.Pieces(), nil))
	go v.Release() // the store's lock is held
	return nil, true
}

// The listing has what was put or found in L2, as long as L2 has it.
func TestCatalogueOfL2(t *testing.T) {
	behind := server{"theirs": "abc", "unseen": "abc", "bad": "broken"}
	k := &Cache{log: slog.New(slog.DiscardHandler)}
	store, err := kvstore.Open(kvstore.Config{MaxBytes: 8 << 20, Far: newCatalogued(behind, 8<<20, nil)})
	if err != nil {
		t.Fatal(err)
	}
	k.store = store
	for _, key := range []string{"r\x00ours", "r\x00gone", "r\x00deleted"} {
		f, err := store.Reserve(key, 3)
		if err != nil {
			t.Fatal(err)
		}
		copy(f.Pieces()[0], "xyz")
		f.Commit(kvstore.Terms{})
	}
	for _, key := range []string{"theirs", "bad", "none"} {
		if l := store.Get(t.Context(), key, netip.Addr{}); l != nil {
			l.Release()
		}
	}
	delete(behind, "r\x00gone")
	k.Delete("r\x00deleted")
	got := ""
	for after := ""; ; {
		page := k.Page("", after, 1)
		if len(page) == 0 {
			break
		}
		after = page[0].Key
		got += Text(after)
		for _, tier := range page[0].Tiers {
			got += " " + tier
		}
		got += "\n"
	}
	if want := "resp/0/gone l1\nresp/0/ours l1 l2\nraw/theirs l1 l2\n"; got != want {
		t.Errorf("listed\n%swant\n%s", got, want)
	}
	if err := store.Close(5 * time.Second); err != nil {
		t.Error(err)
	}
}

// away is a tier whose servers do not answer for a while.
type away struct {
	server
	down bool
}

func (a *away) Exists(key string, at time.Time) bool { return !a.down && a.server.Exists(key, at) }
func (a *away) Unsure(string) bool                   { return a.down }

// TestCatalogueOutlivesAnOutage: when L2 is back, the listing has its keys again, and what L2 has lost is dropped, with
// its bytes, without a listing.
func TestCatalogueOutlivesAnOutage(t *testing.T) {
	behind := &away{server: server{}}
	c := newCatalogued(behind, 1<<30, nil)
	for i := range tended + 10 {
		key := fmt.Sprintf("r\x00%05d", i)
		behind.server[key] = "abc"
		found, err := c.Get(t.Context(), key, func(a kvstore.Arrival) ([][]byte, error) { return [][]byte{make([]byte, a.Size)}, nil })
		if !found || err != nil {
			t.Fatal(found, err)
		}
	}
	behind.down = true
	if page := c.Page("", "", 10); len(page) != 0 {
		t.Errorf("of servers that do not answer %d keys are listed", len(page))
	}
	behind.down = false
	if page := c.Page("", "", 2*tended); len(page) != tended+10 {
		t.Errorf("%d keys are listed after an outage; want all %d", len(page), tended+10)
	}
	delete(behind.server, "r\x0000000")
	delete(behind.server, fmt.Sprintf("r\x00%05d", tended+9))
	next := c.tendFrom(t.Context(), "")
	if got := c.keys.Stats().Keys; next == "" || got != tended+9 {
		t.Errorf("after a first look %d keys are known, and it goes on behind %q", got, next)
	}
	next = c.tendFrom(t.Context(), next)
	if got := c.keys.Stats(); next != "" || got.Keys != tended+8 || got.ValueBytes != 3*(tended+8) {
		t.Errorf("after a second look: %+v, and it goes on behind %q", got, next)
	}
}

// sized is a tier that reports its size.
type sized struct{ kvstore.Backing }

func (sized) MaxBytes() int64 { return 7 << 30 }

// The size that the servers behind report is the cache's size, through the catalogue too.
func TestCataloguePassesTheSizeOn(t *testing.T) {
	if got := newCatalogued(sized{}, 1<<20, nil).MaxBytes(); got != 7<<30 {
		t.Errorf("%d bytes; want those of the tier", got)
	}
	if got := newCatalogued(nil, 1<<20, nil).MaxBytes(); got != 0 {
		t.Errorf("%d bytes of a tier that does not say", got)
	}
}
