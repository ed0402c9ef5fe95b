package kvcache

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/catalog"
)

// hearer writes down what it is told.
type hearer struct{ heard []string }

func (h *hearer) Forget(lost []Lost) {
	for _, l := range lost {
		h.heard = append(h.heard, fmt.Sprintf("%s of %s, rank %x, salt %q, by %s", l.Hash, l.Model, l.Rank, l.Salt,
			strings.Join(l.Adapters, " ")))
	}
}

func (h *hearer) ForgetAll(adapters []string) {
	h.heard = append(h.heard, "all by "+strings.Join(adapters, " "))
}

// told is what h has been told since the last call.
func (h *hearer) told() string {
	defer func() { h.heard = nil }()
	return strings.Join(h.heard, "; ")
}

// TestTeller: a key that is in no tier is told at once, and again after a while, when the server's news of it have come;
// one that a tier has, or that no server makes, is not told.
func TestTeller(t *testing.T) {
	there := map[string]bool{}
	h := &hearer{}
	var log strings.Builder
	x := &teller{losses: kvstore.NewLosses(4), has: func(key string) bool { return there[key] }, to: h,
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
		x.tell(now.Add(after))
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
	if n := strings.Count(log.String(), "lost more values at once than it can tell"); n != 1 {
		t.Errorf("%d lines say so; want 1: %s", n, &log)
	}
}

// TestLosses: what memory evicts, expires or deletes, and what L2 turns out not to have, is noted; what is replaced is not.
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
	put("e", 4<<20, kvstore.Terms{}) // for which c goes, and then d
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
	catalogue.tendFrom("")
	f("looked after in L2", "flushed")
}
