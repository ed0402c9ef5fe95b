package kvcache

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/catalog"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// hearer records the calls of Beliefs.
type hearer struct{ heard []string }

func (h *hearer) Forget(lost []chunks.Lost) {
	for _, l := range lost {
		h.heard = append(h.heard, fmt.Sprintf("%s of %s, rank %x, salt %q, by %s", l.Hash, l.Model, l.Rank, l.Salt,
			strings.Join(l.Adapters, " ")))
	}
}

func (h *hearer) ForgetAll(adapters []string) {
	h.heard = append(h.heard, "all by "+strings.Join(adapters, " "))
}

// told returns the calls since the last told.
func (h *hearer) told() string {
	defer func() { h.heard = nil }()
	return strings.Join(h.heard, "; ")
}

// TestLossReporter: lossReporter reports a key that is in no tier at once, and again after a while, when the server's
// report of the put has come. It does not report a key that a tier has, or that no server makes.
func TestLossReporter(t *testing.T) {
	there := map[string]bool{}
	h := &hearer{}
	var log strings.Builder
	x := &lossReporter{losses: kvstore.NewLosses(4), has: func(key string) bool { return there[key] }, to: h,
		log: slog.New(slog.NewTextHandler(&log, nil))}
	const gone, kept = "r\x00org/tiny@02010201@0@ab12@a salt", "h\x07lmcacheorg/tiny@01000100@0@cd34"
	const goneText = `ab12 of org/tiny, rank 2010201, salt "a salt", by resp valkey`
	there[kept] = true
	x.losses.Note(gone)
	x.losses.Note(kept)
	x.losses.Note("r\x00org/tiny@1@0@ab@bfloat16")
	x.losses.Note("notes")
	now := time.Now()
	f := func(what string, after time.Duration, want string) {
		t.Helper()
		x.report(now.Add(after))
		if got := h.told(); got != want {
			t.Errorf("%s: told %s; want %s", what, got, want)
		}
	}
	f("at once", 0, goneText)
	f("soon", lateness-1, "")
	f("when the news have come", lateness, goneText)
	f("later", time.Hour, "")
	there[kept] = false
	x.losses.Note(kept)
	f("the last tier has lost it", 0, `cd34 of org/tiny, rank 1000100, salt "", by sagemaker-hyperpod`)
	there[kept] = true // put again
	f("put again", lateness, "")
	for range 5 {
		x.losses.Note(kept)
	}
	f("too many", 0, "all by resp valkey sagemaker-hyperpod")
	f("too many, soon", lateness-1, "")
	f("too many, when the news have come", lateness, "all by resp valkey sagemaker-hyperpod")
	f("too many, later", time.Hour, "")
	for range 5 {
		x.losses.Note(kept)
	}
	f("too many within a minute", quietAfter-1, "all by resp valkey sagemaker-hyperpod")
	if n := strings.Count(log.String(), "lost more values at once than it can report"); n != 1 {
		t.Errorf("%d lines say so; want 1: %s", n, &log)
	}
}

// TestLosses: the store notes keys that memory evicts, expires or deletes, and keys that L2 lacks; not replaced ones.
func TestLosses(t *testing.T) {
	losses := kvstore.NewLosses(1000)
	store, err := kvstore.Open(kvstore.Config{MaxBytes: 8 << 20, Losses: losses})
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, size int64, terms kvstore.Terms) {
		t.Helper()
		f, err := store.Reserve(key, size)
		if err != nil {
			t.Fatal(err)
		}
		copy(f.Pieces()[0], "xyz")
		f.Commit(terms)
	}
	f := func(what, want string) {
		t.Helper()
		keys, many := losses.Take(nil)
		slices.Sort(keys)
		if got := strings.Join(keys, " "); got != want || many {
			t.Errorf("%s: %s are noted, too many: %v; want %s", what, got, many, want)
		}
	}
	put("a", 3, kvstore.Terms{})
	put("a", 3, kvstore.Terms{})
	f("replaced", "")
	store.Delete("a")
	f("deleted", "a")
	put("b", 3, kvstore.Terms{Life: time.Nanosecond})
	if _, _, ok := store.Info("b"); ok {
		t.Error("b is there after its end")
	}
	f("expired", "b")
	put("c", 3, kvstore.Terms{})
	put("d", 4<<20, kvstore.Terms{})
	put("e", 4<<20, kvstore.Terms{}) // it evicts c, and then d
	f("evicted", "c d")
	catalogue := newCatalogued(server{"here": "abc"}, 8<<20, losses)
	for _, key := range []string{"here", "evicted", "flushed"} {
		catalogue.keys.Put(catalog.Item{Key: key, Size: 3})
	}
	for _, key := range []string{"evicted", "never there"} {
		if found, err := catalogue.Get(t.Context(), key, nil); found || err != nil {
			t.Errorf("%s: %v, %v", key, found, err)
		}
	}
	f("not found in L2", "evicted")
	catalogue.tendFrom(t.Context(), "")
	f("looked after in L2", "flushed")
}

// twoMembers opens two daemons of a pool in this process, of 8 MiB each.
func twoMembers(t *testing.T, more func(n int, c *Config)) (all []*Cache) {
	t.Helper()
	doors := map[string]net.Listener{}
	var members []string
	for range 2 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		doors[l.Addr().String()] = l
		members = append(members, l.Addr().String())
	}
	for n, m := range members {
		c := config()
		c.RESP = m
		c.Bind = bound(doors)
		c.L2 = &L2{Memory: true, Members: Members{List: members}, Self: m, Promote: "always", Timeout: 30 * time.Second}
		more(n, &c)
		k, _ := running(t, c)
		all = append(all, k)
	}
	return all
}

// TestPoolFindsSpilled: a value that only another member's disk has is found there, without a report of it.
func TestPoolFindsSpilled(t *testing.T) {
	all := twoMembers(t, func(n int, c *Config) {
		if n == 1 {
			c.SpillDir, c.SpillBytes = t.TempDir(), 64<<20
		}
	})
	const values, size = 100, 256 << 10
	peer := redis.NewClient(&redis.Options{Addr: all[1].RESPAddr(), Protocol: 2, ClientName: remote.PeerName})
	defer peer.Close()
	tiers := func(n int) string {
		page := all[1].Page(fmt.Sprintf("r\x00k%02d", n), "", 1)
		if len(page) == 0 {
			return ""
		}
		return strings.Join(page[0].Tiers, " ")
	}
	for n := range values {
		key := fmt.Sprintf("k%02d", n)
		if err := peer.Set(t.Context(), "r\x00"+key, valueOf(key, size), 0).Err(); err != nil {
			t.Fatal(err)
		}
		waittest.Until(t, "the value is spilled", func() bool { return tiers(n) == "l1 disk" })
	}
	c := client(t, all[0])
	found, asked := 0, 0
	for n := range values / 2 {
		if tiers(n) != "disk" {
			continue
		}
		asked++
		key := fmt.Sprintf("k%02d", n)
		b, err := c.Get(t.Context(), key).Bytes()
		switch {
		case err == nil && bytes.Equal(b, valueOf(key, size)):
			found++
		case err != redis.Nil:
			t.Errorf("GET %s: %d bytes, %v", key, len(b), err)
		}
	}
	if asked < 40 || found < asked/8 {
		t.Errorf("of %d values that only the other member's disk has %d are found; want those of its keys, some half", asked, found)
	}
}

// TestLossesOfThePool: a loss of another member of a pool is reported without a read; a value that it has is not.
func TestLossesOfThePool(t *testing.T) {
	h := &safeHearer{told: map[string]bool{}}
	all := twoMembers(t, func(n int, c *Config) {
		if n == 0 {
			c.Beliefs = h
		}
	})
	c := client(t, all[0])
	set := func(key string) {
		t.Helper()
		if err := c.Set(t.Context(), key, valueOf(key, 256<<10), 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	chunk := func(n int) string { return fmt.Sprintf("org/tiny@01000100@0@%016x", n+1) }
	const chunks = 16
	inStore := func(k *Cache, n int) bool { return kvstore.NewView(k.store, kvstore.Here).Has("r\x00" + chunk(n)) }
	waittest.Until(t, "the other member has a chunk", func() bool {
		theirs := 0
		for n := range chunks {
			set(chunk(n))
			if inStore(all[1], n) {
				theirs++
			}
		}
		return theirs > 2
	})
	if told := h.all(); len(told) > 0 {
		t.Errorf("%v are told while they are there", told)
	}
	for n := 0; ; n++ {
		set(fmt.Sprint("filler", n))
		left := 0
		for i := range chunks {
			if inStore(all[0], i) || inStore(all[1], i) {
				left++
			}
		}
		if left == 0 {
			break
		}
		if n > 10_000 {
			t.Fatalf("after %d values %d chunks are there still", n, left)
		}
	}
	waittest.Until(t, "all that was lost is told", func() bool { return len(h.all()) == chunks })
}

// safeHearer records the hashes of the calls.
type safeHearer struct {
	mu   sync.Mutex
	told map[string]bool
}

func (h *safeHearer) Forget(lost []chunks.Lost) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range lost {
		h.told[l.Hash] = true
	}
}

func (h *safeHearer) ForgetAll([]string) {}

func (h *safeHearer) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.told))
}

// bound are listeners by their address.
type bound map[string]net.Listener

func (b bound) Listen(_, addr string) (net.Listener, error) { return b[addr], nil }
