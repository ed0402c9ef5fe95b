package kvcache

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/kvstore/remote"
)

// vigil logs what an operator must know about the cache, each matter at most once a minute: values that are refused,
// lost after a promise, or not sent to L2, and the size in tokens that the strategies use.
type vigil struct {
	log    *slog.Logger
	logged map[string]uint64    // counts as of their last lines
	quiet  map[string]time.Time // no line before
	told   chunks.Estimate      // in the last line
}

func newVigil(log *slog.Logger) *vigil {
	return &vigil{log: log, logged: map[string]uint64{}, quiet: map[string]time.Time{}}
}

const (
	lookEvery  = time.Second
	quietAfter = time.Minute
)

// remedies gives the remedy for refused values, by the reasons of kvstore.Stats.
var remedies = map[string]string{
	"too_large": "a value is longer than 128 MiB or than all room for values: enlarge kv_cache.max_bytes, or lower " +
		"chunk_size in LMCache",
	"key": "a client sends no key or one of over 4096 bytes: no LMCache does",
	"full": "all that is there is being read or promised to clients for up to 30 s: enlarge kv_cache.max_bytes, or have " +
		"fewer workers use it",
	"writing": "clients announce more values at a time than half of kv_cache.max_bytes has room for: enlarge it, or " +
		"find out who opens a SET or a PUT and sends nothing",
	"quiet": "workers still have the last process's shared memory mapped: it ends by itself a minute after the start",
}

// run checks the cache until ctx ends.
func (v *vigil) run(ctx context.Context, stats func() kvstore.Stats, holds func() chunks.Estimate,
	l2 func() *remote.Stats) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			s := stats()
			v.look(now, s.Refused, holds())
			v.lookBroken(now, s.Broken)
			if s := l2(); s != nil {
				v.lookCrowded(now, s)
			}
		}
	}
}

// grown returns by how much a count has grown since its last line; 0 = no line is due.
func (v *vigil) grown(now time.Time, what string, count uint64) uint64 {
	n := count - v.logged[what]
	if n == 0 || now.Before(v.quiet[what]) {
		return 0
	}
	v.logged[what], v.quiet[what] = count, now.Add(quietAfter)
	return n
}

// look logs what has changed since its last call.
func (v *vigil) look(now time.Time, refused map[string]uint64, e chunks.Estimate) {
	for _, why := range slices.Sorted(maps.Keys(remedies)) {
		if n := v.grown(now, why, refused[why]); n > 0 {
			v.log.Warn("values were refused at the KV cache", "why", why, "values", n, "remedy", remedies[why])
		}
	}
	if v.stands(e) || now.Before(v.quiet["tokens"]) {
		return
	}
	v.told, v.quiet["tokens"] = e, now.Add(quietAfter)
	level, remedy := slog.LevelInfo, ""
	if e.Guessed && e.ChunkGuessed {
		level, remedy = slog.LevelWarn, "set [lmcache] chunk_size if the workers' is another, or the pools' shared_kv_tokens"
	}
	v.log.Log(context.Background(), level, "strategies take the KV cache for a shared tier of so many tokens, by what is "+
		"put", "tokens", e.Tokens, "models", len(e.Models), "chunk_tokens_guessed", e.Guessed && e.ChunkGuessed,
		"remedy", remedy)
}

// lookBroken logs that clients may wait for ever.
func (v *vigil) lookBroken(now time.Time, broken uint64) {
	n := v.grown(now, "broken", broken)
	if n == 0 {
		return
	}
	v.log.Warn("values that EXISTS found were lost before they could be read: a client of LMCache's resp:// waits for "+
		"such a value for ever", "values", n,
		"remedy", "if L2 evicts, give it more memory; if values were refused as full, enlarge kv_cache.max_bytes; or use "+
			"redis:// as the remote_url, which knows a miss")
}

// lookCrowded logs that values came faster than L2 takes them.
func (v *vigil) lookCrowded(now time.Time, l2 *remote.Stats) {
	n := v.grown(now, "crowded", l2.Crowded)
	if n == 0 {
		return
	}
	v.log.Warn("values were not written to the KV cache's L2, as too many waited: it takes them more slowly than they "+
		"come", "values", n, "waiting_bytes", l2.Queued, "remedy", "find out what slows the servers or the network; for "+
		"short bursts enlarge kv_cache.l2.queue_bytes")
}

// stands reports whether the last line still holds: the size has changed by less than half.
func (v *vigil) stands(e chunks.Estimate) bool {
	if e.Tokens == 0 {
		return true // no put yet
	}
	was, is := float64(v.told.Tokens), float64(e.Tokens)
	return is < 1.5*was && is > was/1.5 && v.told.Guessed == e.Guessed
}
