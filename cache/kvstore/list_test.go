package kvstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore/catalog"
)

// listed is a Backing that has keys and no values.
type listed struct{ Catalog *catalog.Catalog }

func (listed) Exists(string, time.Time) bool                         { return false }
func (listed) Get(context.Context, string, Place) (bool, error)      { return false, nil }
func (listed) Put(string, time.Time, *Lease) (<-chan struct{}, bool) { return nil, false }
func (l listed) Delete(key string) bool                              { return l.Catalog.Delete(key) }
func (l listed) Page(prefix, after string, limit int) []catalog.Item {
	return l.Catalog.Page(prefix, after, limit)
}

// Pages list the keys of memory and of the tier behind, in order, whatever was put, evicted and deleted before.
func TestPages(t *testing.T) {
	far := catalog.New(0)
	behind := listed{Catalog: catalog.New(0)}
	s := open(t, Config{MaxBytes: MinBytes, Disk: behind, Far: listed{Catalog: far}})
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range 3000 {
		key := fmt.Sprintf("m%d@%d", rng.IntN(3), rng.IntN(900))
		switch rng.IntN(4) {
		case 0:
			s.Delete(key)
		case 1:
			behind.Catalog.Put(catalog.Item{Key: key, Size: int64(i)})
			far.Put(catalog.Item{Key: key + "'", Size: int64(i)})
		default:
			must(t, put(s, key, "x", 4000, Terms{}))
		}
	}
	if n := s.Stats().Evictions; n == 0 {
		t.Error("nothing was evicted: the test tries too little")
	}
	for _, limit := range []int{1, 7, 100, 5000} {
		comparePages(t, s, far, "m1@", limit)
		comparePages(t, s, far, "", limit)
		comparePages(t, s, far, "none", limit)
	}
}

// comparePages walks by pages of limit keys, and compares with all keys of memory and the tier behind.
func comparePages(t *testing.T, s *Store, far *catalog.Catalog, prefix string, limit int) {
	t.Helper()
	want := map[string]string{}
	for key := range s.memory.entries {
		want[key] += "m"
	}
	for _, i := range s.behind.all[0].(listed).Catalog.Page("", "", 10_000) {
		want[i.Key] += "b"
	}
	for _, i := range far.Page("", "", 10_000) {
		want[i.Key] += "f"
	}
	var keys []string
	for key := range want {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var got []string
	for after := ""; ; {
		page := s.Page(prefix, after, limit)
		for _, l := range page {
			got = append(got, l.Key)
			if where := map[bool]string{true: "m"}[l.Memory] + map[bool]string{true: "b"}[l.Disk] +
				map[bool]string{true: "f"}[l.Far]; where != want[l.Key] {
				t.Fatalf("%q is said to be in %q; want %q", l.Key, where, want[l.Key])
			}
		}
		if len(page) < limit {
			break
		}
		after = page[len(page)-1].Key
	}
	if !slices.Equal(got, keys) {
		t.Errorf("pages of %d with %q: %d keys; want %d", limit, prefix, len(got), len(keys))
	}
}

// Noted is called for each put with the value's first bytes, wherever the pieces end.
func TestNoted(t *testing.T) {
	var got []string
	s := open(t, Config{Noted: func(key string, size int64, head []byte) {
		got = append(got, fmt.Sprintf("%s %d %s", key, size, head))
	}})
	must(t, put(s, "a", "0123456789", 5, Terms{}))
	must(t, put(s, "b", "0123456789", 1<<20, Terms{}))
	must(t, put(s, "c", "0123456789", 0, Terms{}))
	want := []string{"a 5 01234", "b 1048576 0123456789012345678901234567", "c 0 "}
	if !slices.Equal(got, want) {
		t.Errorf("%q; want %q", got, want)
	}
}
