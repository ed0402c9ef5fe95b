package worker

// together is how close first bytes of one engine step come, in seconds.
const together = 1e-4

// minSample is how many new tokens a sample needs: below, the step's fixed cost is measured. A warm prompt that brings
// as many is no sample, as most of its est rests on a guess of what is cached.
const minSample = 1024

// group is the requests whose first bytes came together: one engine step ended their prefill, so only the sum of their
// work explains its time.
type group struct {
	n    int
	at   float64 // earliest dispatch
	prev float64 // end of the prefill before
	last float64 // newest first byte
	est  float64
	cold int  // new tokens of prompts less than half cached
	warm bool // a prompt at least half cached brought more than minSample new tokens
}

// add puts r into the group, whose newest first byte comes now. before is when the worker's last prefill ended.
func (g *group) add(r *request, before, now float64) {
	if g.n == 0 {
		*g = group{at: r.at, prev: before}
	}
	g.n++
	g.at = min(g.at, r.at)
	g.last = now
	g.est += r.est
	if 2*r.cached < r.tokens {
		g.cold += r.newTokens()
	} else if r.newTokens() > minSample {
		g.warm = true
	}
}

// slowness returns what the group's time says of the worker; false if it says nothing.
func (g *group) slowness() (x float64, ok bool) {
	if g.warm || g.cold < minSample || g.est <= 0 {
		return 0, false
	}
	x = (g.last - max(g.at, g.prev)) / g.est
	return x, x > 0
}
