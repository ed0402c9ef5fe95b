package kvcache

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
)

// Beliefs is the index of chunks that LMCache's multi-process servers reported to have put here.
type Beliefs interface {
	// Forget is called with parts of chunks that are in no tier any more.
	Forget(lost []chunks.Lost)
	// ForgetAll is called when more were lost than can be listed one by one.
	ForgetAll(adapters []string)
}

// adapters are the server adapters that reach a door, by the door's mark in the store's keys.
var adapters = map[byte][]string{'r': {"resp", "valkey"}, 'h': {"sagemaker-hyperpod"}}

const (
	reportEvery = 100 * time.Millisecond

	// lateness bounds how long after a loss the server's report of the put may come: it gathers events for a second, and
	// gives up a request after two.
	lateness = 5 * time.Second

	// maxLosses bounds the keys between two calls of Beliefs, and those repeated within lateness: a segment of a spill of
	// 1 TiB has as many values of 1 MiB.
	maxLosses = 1 << 17
)

// lossReporter reports the keys that the cache has lost to Beliefs. It reports each loss at once, and again after
// lateness.
type lossReporter struct {
	losses *kvstore.Losses
	has    func(key string) bool
	to     Beliefs
	log    *slog.Logger

	room  []string // memory for the next keys
	again []loss   // the oldest first
	all   time.Time
	quiet time.Time // no log line before
}

// loss is a loss that will be reported again.
type loss struct {
	key string
	due time.Time
}

// run reports losses until ctx ends.
func (r *lossReporter) run(ctx context.Context) {
	tick := time.NewTicker(reportEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			r.report(now)
		}
	}
}

func (r *lossReporter) report(now time.Time) {
	keys, many := r.losses.Take(r.room)
	var lost []chunks.Lost
	for _, key := range keys {
		if l, ok := r.lost(key); ok {
			lost = append(lost, l)
			r.again = append(r.again, loss{key: key, due: now.Add(lateness)})
		}
	}
	r.room = keys
	if many || len(r.again) > maxLosses {
		r.reportAllLost(now)
		return
	}
	due := 0
	for due < len(r.again) && !now.Before(r.again[due].due) {
		if l, ok := r.lost(r.again[due].key); ok {
			lost = append(lost, l)
		}
		due++
	}
	r.again = r.again[due:]
	if len(lost) > 0 {
		r.to.Forget(lost)
	}
	if !r.all.IsZero() && !now.Before(r.all) {
		r.all = time.Time{}
		r.forgetAll()
	}
}

// lost returns the loss of a key; false = no server makes such keys, or the key is still in a tier.
func (r *lossReporter) lost(key string) (chunks.Lost, bool) {
	k, ok := chunks.ParseKey(key)
	if !ok || k.Rank == 0 || adapters[k.Door] == nil || r.has(key) {
		return chunks.Lost{}, false
	}
	return chunks.Lost{Adapters: adapters[k.Door], Model: k.Model, Hash: k.Hash, Rank: k.Rank, Salt: k.Salt}, true
}

// reportAllLost reports losses whose keys are unknown.
func (r *lossReporter) reportAllLost(now time.Time) {
	r.again = nil
	r.all = now.Add(lateness)
	r.forgetAll()
	if now.Before(r.quiet) {
		return
	}
	r.quiet = now.Add(quietAfter)
	r.log.Warn("the KV cache lost more values at once than it can report one by one: what LMCache's servers have put "+
		"here does not count until they put it again; nothing to do after a flush, else enlarge kv_cache.max_bytes or "+
		"spill_bytes",
		"most", maxLosses)
}

func (r *lossReporter) forgetAll() { r.to.ForgetAll(slices.Concat(adapters['r'], adapters['h'])) }
