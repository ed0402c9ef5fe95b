package kvcache

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
)

// Beliefs is who takes chunks of LMCache's multi-process servers to be here, since the servers said that they put them.
type Beliefs interface {
	// Forget is called with parts of chunks of which no tier has a copy.
	Forget(lost []Lost)
	// ForgetAll is called when more were lost than could be told one by one.
	ForgetAll(adapters []string)
}

// Lost is a part of a chunk that no tier has any more.
type Lost struct {
	Adapters    []string // by which servers put it here: the types of their --l2-adapter
	Model, Hash string
	Rank        uint32 // kv_rank
	Salt        string
}

// adapters are those that reach a door, by the door's mark in the store's keys.
var adapters = map[byte][]string{'r': {"resp", "valkey"}, 'h': {"sagemaker-hyperpod"}}

const (
	tellEvery = 100 * time.Millisecond

	// lateness is for how long what a server has put may be lost before the server tells that it has put it: it gathers
	// events for a second, and gives up a request after two.
	lateness = 5 * time.Second

	// maxLosses is of keys between two tellings, and of those told within lateness: a segment of a spill of 1 TiB has as
	// many values of 1 MiB.
	maxLosses = 1 << 17
)

// teller tells Beliefs what the cache has lost. Each loss is told at once, and again after lateness.
type teller struct {
	losses *kvstore.Losses
	has    func(key string) bool
	to     Beliefs
	log    *slog.Logger

	room  []string // for the next keys
	again []loss   // the oldest first
	all   time.Time
	quiet time.Time // no line before that
}

// loss is what is told again.
type loss struct {
	key string
	due time.Time
}

// run tells until ctx ends.
func (t *teller) run(ctx context.Context) {
	tick := time.NewTicker(tellEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			t.tell(now)
		}
	}
}

func (t *teller) tell(now time.Time) {
	keys, many := t.losses.Take(t.room)
	var lost []Lost
	for _, key := range keys {
		if l, ok := t.lost(key); ok {
			lost = append(lost, l)
			t.again = append(t.again, loss{key: key, due: now.Add(lateness)})
		}
	}
	t.room = keys
	if many || len(t.again) > maxLosses {
		t.tellAll(now)
		return
	}
	due := 0
	for due < len(t.again) && !now.Before(t.again[due].due) {
		if l, ok := t.lost(t.again[due].key); ok {
			lost = append(lost, l)
		}
		due++
	}
	t.again = t.again[due:]
	if len(lost) > 0 {
		t.to.Forget(lost)
	}
	if !t.all.IsZero() && !now.Before(t.all) {
		t.all = time.Time{}
		t.forgetAll()
	}
}

// lost returns what there is to tell of a key; false = it is no server's, or is there.
func (t *teller) lost(key string) (Lost, bool) {
	k, ok := chunks.ParseKey(key)
	if !ok || k.Rank == 0 || adapters[k.Door] == nil || t.has(key) {
		return Lost{}, false
	}
	return Lost{Adapters: adapters[k.Door], Model: k.Model, Hash: k.Hash, Rank: k.Rank, Salt: k.Salt}, true
}

// tellAll is for losses whose keys are not known.
func (t *teller) tellAll(now time.Time) {
	t.again = nil
	t.all = now.Add(lateness)
	t.forgetAll()
	if now.Before(t.quiet) {
		return
	}
	t.quiet = now.Add(quietAfter)
	t.log.Warn("the KV cache lost more values at once than it can tell one by one: what LMCache's servers have put here "+
		"does not count until they put it again; nothing to do after a flush, else enlarge kv_cache.max_bytes or spill_bytes",
		"most", maxLosses)
}

func (t *teller) forgetAll() { t.to.ForgetAll(slices.Concat(adapters['r'], adapters['h'])) }
