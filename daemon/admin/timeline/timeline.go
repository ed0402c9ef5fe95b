package timeline

import (
	"slices"
	"sync"
	"time"
)

// Step is the length of a span, Spans is how many are kept: an hour.
const (
	Step  = 30 * time.Second
	Spans = int(time.Hour / Step)
)

const (
	maxTracks = 1500 // of workers and pools
	maxMarks  = 500
	maxNamed  = 5 // workers that a mark names
)

// Worker is what one look shows of a worker.
type Worker struct {
	Pool, ID string
	State    string  // in the words of docs/states.md
	Up       bool    // gets requests
	InFlight int     // requests of all routers
	Queue    float64 // seconds of prefill believed queued
	KV       float64 // share of its KV cache in use
	TTFT     float64 // running mean in seconds; 0 = none seen
}

// Timeline is the last hour. Its zero value is ready. It is safe for concurrent use.
type Timeline struct {
	mu     sync.Mutex // guards all below
	tracks map[owner]*track
	marks  []Mark // the oldest first
	swept  int64  // span in which old tracks were removed last
}

// owner is a worker, or with an empty id its pool.
type owner struct{ pool, id string }

// track is the last hour of a worker or a pool.
type track struct {
	spans [Spans]span // an instant has the span with its number modulo Spans
	last  int64       // number of the newest span
	state string      // of a worker at the last look; "" = it was never seen
}

// span sums the looks of half a minute.
type span struct {
	number                    int32 // of the half minute since 1970; a span with another number is old
	looks                     uint32
	up, inFlight, queue, ttft float32
	kv                        float32 // of a pool: the sum over its workers that are up
}

// number returns the number of an instant's span.
func number(now time.Time) int64 { return now.Unix() / int64(Step/time.Second) }

// Look records how all workers are. Call it about once a second.
func (t *Timeline) Look(all []Worker, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := number(now)
	t.sweep(n)
	pools := map[string]*span{}
	for i := range all {
		w := &all[i]
		one := span{inFlight: float32(w.InFlight), queue: float32(w.Queue), ttft: float32(w.TTFT)}
		if w.Up {
			one.up, one.kv = 1, float32(w.KV)
		}
		if k := t.track(owner{pool: w.Pool, id: w.ID}); k != nil {
			k.add(n, &one)
			t.compare(k, w, now)
		}
		if pools[w.Pool] == nil {
			pools[w.Pool] = &span{}
		}
		pools[w.Pool].sum(&one)
	}
	for name, sum := range pools {
		if k := t.track(owner{pool: name}); k != nil {
			k.add(n, sum)
		}
	}
}

// sweep removes the tracks that have been silent for an hour, once a span. The caller holds t.mu.
func (t *Timeline) sweep(n int64) {
	if n == t.swept {
		return
	}
	t.swept = n
	for o, k := range t.tracks {
		if n-k.last >= int64(Spans) {
			delete(t.tracks, o)
		}
	}
}

// track returns an owner's track, nil if there are too many. Pools, which the configuration bounds, always have one.
// The caller holds t.mu.
func (t *Timeline) track(o owner) *track {
	k := t.tracks[o]
	if k != nil || len(t.tracks) >= maxTracks && o.id != "" {
		return k
	}
	if t.tracks == nil {
		t.tracks = map[owner]*track{}
	}
	k = new(track)
	t.tracks[o] = k
	return k
}

// add adds a look to its span, which it empties if its half minute has just begun.
func (k *track) add(n int64, look *span) {
	s := &k.spans[n%int64(Spans)]
	if int64(s.number) != n {
		*s = span{number: int32(n)}
	}
	s.looks++
	s.sum(look)
	k.last = n
}

// sum adds the values of another span.
func (s *span) sum(o *span) {
	s.up += o.up
	s.inFlight += o.inFlight
	s.queue += o.queue
	s.kv += o.kv
	s.ttft += o.ttft
}

// of returns the span with a number, empty if there was no look.
func (k *track) of(n int64) span {
	if s := k.spans[n%int64(Spans)]; int64(s.number) == n {
		return s
	}
	return span{}
}

// owners returns the workers of the pools, in order. The caller holds t.mu.
func (t *Timeline) owners(pools []string) (all []owner) {
	for o := range t.tracks {
		if o.id != "" && slices.Contains(pools, o.pool) {
			all = append(all, o)
		}
	}
	slices.SortFunc(all, owner.compare)
	return all
}
