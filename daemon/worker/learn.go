package worker

import "math"

const (
	window    = 30.0  // seconds over which lambda and rho are averaged
	driftTime = 200.0 // seconds in which rel drifts to 1; without it one bad sample starves a worker for ever
	relStep   = 0.04
	fleetStep = 0.01
	maxSlow   = 1e3 // bounds of fleet and rel, against a clock that jumps; a CPU worker is 100 times slower than c1 says
)

// C1 is the estimated seconds of prefill a token, on a worker of slowness 1.
func (p *Pool) C1() float64 { return p.conf().c1 }

// C2 is the further seconds a token for each token before it: attention costs as much as the rest at 64k tokens.
func (p *Pool) C2() float64 { return p.conf().c2 }

// Estimate is P/m: the seconds of prefill on a worker of slowness 1 for a prompt of so many tokens, some of them
// cached. Worked, at 15,000 tokens a second: 15,000 tokens, none cached: 1.229 s; 14,000 of them cached: 0.0963 s.
func (p *Pool) Estimate(tokens, cached int) float64 {
	n := float64(max(1, tokens-cached))
	l := max(float64(tokens), n)
	c := p.conf()
	return c.c1*n + c.c2*n*(l-n/2)
}

// learn takes one sample of slowness seen on w: fleet and rel are running medians, moved by the sample's side alone, so
// that one that is off by a factor of 100 does no more harm than one that is off by 1 %.
func (p *Pool) learn(w *Worker, x float64) {
	m := p.fleet * w.rel
	step := max(fleetStep, .5/(1+float64(p.samples)/3))
	p.samples++
	p.fleet = bound(p.fleet * math.Exp(step*side(x, p.fleet)))
	w.rel = bound(w.rel * math.Exp(relStep*side(x, m)))
	w.heard++
}

func side(x, value float64) float64 {
	switch {
	case x > value:
		return 1
	case x < value:
		return -1
	}
	return 0
}

func bound(v float64) float64 { return min(maxSlow, max(1/maxSlow, v)) }

// settle brings w's queue to now: a complete group of first bytes becomes a sample, answers in one piece leave.
func (p *Pool) settle(w *Worker, now float64) {
	if x, ok := w.queue.sample(now); ok {
		p.learn(w, x)
	}
	w.queue.expire(now, p.fleet*w.rel)
}

// settleAll settles every worker. It comes before the first row is filled: a sample moves the fleet's speed, and a row
// that was filled before it would show another speed than its neighbours though the workers are equal.
func (p *Pool) settleAll(now float64) {
	for _, w := range p.workers {
		p.settle(w, now)
	}
}

// age writes the averages down as of now, once a second, and lets rel drift. Between, sums keep the weights of p.aged:
// a dispatch at now adds e^((now-aged)/window) times its value and a reader multiplies by weight(now), so that Snapshot
// pays one exponential and not one a worker.
func (p *Pool) age(now float64) {
	dt := now - p.aged
	if dt < 1 {
		return
	}
	p.aged = now
	fade, drift := math.Exp(-dt/window), math.Exp(-dt/driftTime)
	p.sent *= fade
	for _, w := range p.workers {
		w.load *= fade
		w.lately *= fade
		w.heard *= drift
		if w.rel != 1 {
			w.rel = math.Pow(w.rel, drift)
		}
	}
}

func (p *Pool) weight(now float64) float64 { return math.Exp((p.aged - now) / window) }

// lambda is the requests sent per second and worker that is up: the average over 30 s, or half of the rate of the last
// 16 a worker if that is more.
//
// The average alone begins at 0 and needs its 30 s. Until then work done twice has no price (see K in sdk/score), and
// chats leave the worker that holds them: a fleet of small models answers a thousand requests in that time. Half of the
// newest rate, as a burst of 16 is no rate that lasts. A shorter window in place of both lost: 5 to 8 % in overload,
// simulated.
func (p *Pool) lambda(now float64) float64 {
	average := p.sent * p.weight(now) / window / float64(max(1, p.up))
	if t, ok := p.dispatched.back(warmth * max(1, p.up)); ok {
		return max(average, .5*warmth/max(shortest, now-t))
	}
	return average
}

const (
	warmth   = 16   // dispatches a worker over which the newest rate is taken
	shortest = 1e-3 // seconds that they are taken to need at least: the rate stays finite when clocks stand still
)

// ring holds the times of the newest dispatches to the fleet.
type ring struct {
	at   []float64
	next int    // index of the oldest, which the next one replaces
	n    uint64 // dispatches ever
}

// hold makes room for size dispatches. A ring that grows begins anew: what it held is of a smaller fleet.
func (r *ring) hold(size int) {
	if len(r.at) < size {
		*r = ring{at: make([]float64, size)}
	}
}

func (r *ring) note(at float64) {
	if len(r.at) == 0 {
		return
	}
	r.at[r.next] = at
	if r.next++; r.next == len(r.at) {
		r.next = 0
	}
	r.n++
}

// back is the time of the k-th last dispatch; false if there were not so many.
func (r *ring) back(k int) (float64, bool) {
	if k > len(r.at) || r.n < uint64(k) {
		return 0, false
	}
	i := r.next - k
	if i < 0 {
		i += len(r.at)
	}
	return r.at[i], true
}

// mean is a running mean over about the last 32 values.
type mean struct {
	value float64
	n     int
}

func (m *mean) add(x float64) {
	m.n = min(m.n+1, 32)
	m.value += (x - m.value) / float64(m.n)
}
