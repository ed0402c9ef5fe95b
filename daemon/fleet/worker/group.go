package worker

import (
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/measure"
)

// together is the largest gap between first bytes of one engine step.
const together = 100 * time.Microsecond

// minSample is how many new tokens a sample needs: with fewer, the step's fixed cost is measured. A warm prompt with
// this many new tokens does not count as a sample, as most of its est depends on a guess about the cache.
const minSample = 1024

// group collects requests whose first bytes came together. One engine step ended their prefill, so only the sum of
// their work explains its time.
type group struct {
	n    int
	at   time.Duration // earliest dispatch
	prev time.Duration // end of the prefill before
	last time.Duration // newest first byte
	est  float64
	cold int  // new tokens of prompts less than half cached
	warm bool // a prompt at least half cached brought more than minSample new tokens
}

// add puts r into the group; r's first byte comes now. before is when the worker's last prefill ended.
func (g *group) add(r *request, before, now time.Duration) {
	if g.n == 0 {
		*g = group{at: r.Sent, prev: before}
	}
	g.n++
	g.at = min(g.at, r.Sent)
	g.last = now
	g.est += r.est
	if 2*r.cached < r.tokens {
		g.cold += r.newTokens()
	} else if r.newTokens() > minSample {
		g.warm = true
	}
}

// slowness returns the slowness that the group's time shows; false if the group does not count as a sample.
func (g *group) slowness() (x float64, ok bool) {
	if g.warm || g.cold < minSample || g.est <= 0 {
		return 0, false
	}
	x = measure.InSeconds(g.last-max(g.at, g.prev)) / g.est
	return x, x > 0
}
