package timeline

import (
	"cmp"
	"math"
	"time"
)

// Point is a span of some pools together.
type Point struct {
	At       time.Time `json:"at"`            // its beginning
	Up       float64   `json:"up"`            // workers; -1 = there was no look at that time, and all other fields are 0
	InFlight float64   `json:"in_flight"`     // mean, of all routers
	Queue    float64   `json:"queue_seconds"` // mean: prefill believed queued at all workers together
	KV       float64   `json:"kv_usage"`      // mean share of the KV cache in use, of workers that were up
}

// Curve is the last hour of a worker: one value a span, the oldest first; -1 = none.
type Curve struct {
	Pool   string    `json:"pool"`
	Worker string    `json:"worker"`
	Queue  []float64 `json:"queue_seconds"`
	KV     []float64 `json:"kv_usage"` // -1 too while it was not up
	TTFT   []float64 `json:"ttft_seconds"`
}

func (o owner) compare(p owner) int {
	return cmp.Or(cmp.Compare(o.pool, p.pool), cmp.Compare(o.id, p.id))
}

// Load returns the last hour of the pools together, the oldest span first.
func (t *Timeline) Load(pools []string, now time.Time) []Point {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Point, 0, Spans)
	for n := number(now) - int64(Spans) + 1; n <= number(now); n++ {
		var sum span
		seen := false
		for _, p := range pools {
			k := t.tracks[owner{pool: p}]
			if k == nil {
				continue
			}
			if s := k.of(n); s.looks > 0 {
				s = s.mean()
				sum.sum(&s)
				seen = true
			}
		}
		p := Point{At: time.Unix(n*int64(Step/time.Second), 0).UTC(), Up: -1}
		if seen {
			p.Up, p.InFlight, p.Queue = round(sum.up), round(sum.inFlight), round(sum.queue)
			if sum.up > 0 {
				p.KV = round(sum.kv / sum.up)
			}
		}
		all = append(all, p)
	}
	return all
}

// mean divides the sums of a span by its looks.
func (s *span) mean() span {
	n := float32(max(1, s.looks))
	return span{number: s.number, looks: s.looks, up: s.up / n, inFlight: s.inFlight / n, queue: s.queue / n,
		kv: s.kv / n, ttft: s.ttft / n}
}

// Curves returns the last hour of each worker of the pools that keep selects, in order. Workers that have left have
// theirs, too.
func (t *Timeline) Curves(pools []string, keep func(pool, worker string) bool, now time.Time) []Curve {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []Curve{}
	for _, o := range t.owners(pools) {
		if !keep(o.pool, o.id) {
			continue
		}
		k, c := t.tracks[o], Curve{Pool: o.pool, Worker: o.id}
		for n := number(now) - int64(Spans) + 1; n <= number(now); n++ {
			s := k.of(n)
			m := s.mean()
			c.Queue = append(c.Queue, known(m.queue, s.looks > 0))
			c.KV = append(c.KV, known(m.kv/max(m.up, 1e-9), m.up > 0))
			c.TTFT = append(c.TTFT, known(m.ttft, m.ttft > 0))
		}
		all = append(all, c)
	}
	return all
}

// known returns a value, or -1.
func known(v float32, ok bool) float64 {
	if !ok {
		return -1
	}
	return round(v)
}

// round keeps three digits behind the point: more only make an answer longer.
func round(v float32) float64 { return math.Round(float64(v)*1000) / 1000 }
