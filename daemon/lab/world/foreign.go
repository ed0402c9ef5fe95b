package world

import (
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// Foreign is a router that places requests by a rule of others.
type Foreign struct {
	rule    trial.Chooser
	hearer  trial.Hearer // nil = it follows no KV events
	fleet   []trial.View
	scraped []time.Duration // when; negative = never
}

// NewForeign returns a router for a fleet of so many workers, each with a KV cache of so many tokens.
func NewForeign(rule trial.Chooser, workers, kvTokens int) *Foreign {
	f := &Foreign{rule: rule, fleet: make([]trial.View, workers), scraped: make([]time.Duration, workers)}
	f.hearer, _ = rule.(trial.Hearer)
	for i := range f.fleet {
		f.fleet[i] = trial.View{Age: -1, KVTokens: kvTokens}
		f.scraped[i] = -1
	}
	return f
}

// Choose implements [Router].
func (f *Foreign) Choose(now time.Duration, q *Request, _ []byte) (worker int, p Placement) {
	for i := range f.fleet {
		if f.scraped[i] >= 0 {
			f.fleet[i].Age = now - f.scraped[i]
		}
	}
	w := f.rule.Choose(now, &q.Request, f.fleet)
	if w < 0 || w >= len(f.fleet) || !f.fleet[w].Up {
		return 0, Refused
	}
	f.fleet[w].InFlight++
	f.rule.Sent(now, &q.Request, w)
	q.Own = w
	return w, Sent
}

// First implements [Router].
func (f *Foreign) First(now time.Duration, q *Request) { f.rule.First(now, &q.Request, q.Own.(int)) }

// End implements [Router].
func (f *Foreign) End(now time.Duration, q *Request, e trial.End) {
	w := q.Own.(int)
	f.fleet[w].InFlight--
	f.rule.End(now, &q.Request, w, &e)
}

// Down implements [Router].
func (f *Foreign) Down(_ time.Duration, worker int) {
	f.fleet[worker] = trial.View{Age: -1, KVTokens: f.fleet[worker].KVTokens, InFlight: f.fleet[worker].InFlight}
	f.scraped[worker] = -1
}

// Up implements [Router].
func (f *Foreign) Up(now time.Duration, worker int) {
	f.fleet[worker].Up = true
	f.rule.Up(now, worker)
}

// Lost implements [Router].
func (f *Foreign) Lost(now time.Duration, worker int) { f.rule.Down(now, worker) }

// Scraped implements [Router].
func (f *Foreign) Scraped(now time.Duration, worker int, s *engine.Stats) {
	v := &f.fleet[worker]
	v.Running, v.Waiting, v.KVUsage = s.Running, s.Waiting+s.Loading, s.KVUsage()
	f.scraped[worker] = now
}

// Tick implements [Router].
func (f *Foreign) Tick(time.Duration) {}

// Follows implements [Router].
func (f *Foreign) Follows() bool { return f.hearer != nil }

// Changed implements [Router].
func (f *Foreign) Changed(now time.Duration, worker int, batches []engine.Batch) {
	for i := range batches {
		for k := range batches[i].Changes {
			switch c := &batches[i].Changes[k]; {
			case c.Kind == engine.Cleared:
				f.rule.Down(now, worker)
			case c.Medium != engine.OnGPU:
			case c.Kind == engine.Stored:
				f.hearer.Stored(now, worker, c.Hashes)
			case c.Kind == engine.Removed:
				f.hearer.Removed(now, worker, c.Hashes)
			}
		}
	}
}

// Remarks implements [Router].
func (f *Foreign) Remarks() trial.Remarks { return trial.Remarks{} }

// Close implements [Router].
func (f *Foreign) Close() {}
