package route

import (
	"math"
	"sync"
	"time"
)

// patience learns how much longer than expected prefills take, by which a prompt is given up at a prefiller that may
// hang. It is TCP's rule for a packet that may be lost (RFC 6298), of the prefill's time as a part of the expected one:
// a mean, and four times the mean deviation from it. So a pool whose prefills take what is expected finds a hang soon,
// and one of slow engines, or of busy ones, waits for longer.
type patience struct {
	mu     sync.Mutex // guards both
	mean   float64    // times the expected seconds; 0 = nothing is known
	spread float64
}

const (
	// leastPatience is above the noise of a network and of an engine's steps.
	leastPatience = 500 * time.Millisecond
	firstPatience = 3.0 // times what is expected, while nothing is known

	// An engine whose speed is not known may be far slower than is assumed.
	blindPatience = 10 * time.Second
)

// learn takes how many times the expected seconds a prefill took.
func (p *patience) learn(x float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		p.mean, p.spread = x, x/2
		return
	}
	p.spread += (math.Abs(x-p.mean) - p.spread) / 4
	p.mean += (x - p.mean) / 8
}

// times returns how many times the expected seconds a prefill may take, and whether something is known.
func (p *patience) times() (n float64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mean == 0 {
		return firstPatience, false
	}
	return p.mean + 4*p.spread, true
}

// Prefilling is a prompt at a prefiller.
type Prefilling struct {
	// Limit is after how long the worker that answers computes the prompt itself: it would need no longer.
	Limit time.Duration

	pool     *Pool
	expected float64 // seconds until it is computed
	blind    bool    // nothing is known of the pool's prefills
}

// Prefills returns what is expected of the first prefiller of the order. Call it before Send.
func Prefills(c *Choice) Prefilling {
	x := Prefilling{pool: c.pool}
	if row := c.order.first(); row >= 0 {
		r := &c.fleet.frame.Rows[row]
		x.expected = c.fleet.frame.Header.Prefill(r)
		if !c.pool.Workers.MayHang(c.fleet.workers[row]) { // else all that waits there waits in vain
			x.expected += r.Wait
		}
	}
	times, known := c.pool.patience.times()
	x.blind = !known
	x.Limit = max(leastPatience, time.Duration(times*x.expected*float64(time.Second)))
	return x
}

// BeSure sets the limit for a prompt that cannot go on when it is given up, so that nothing would be learnt of it.
func (x *Prefilling) BeSure() {
	if x.blind {
		x.Limit = max(x.Limit, blindPatience)
	}
}

// Took records how long the prefill took. An engine that stood still for a minute is no measure: of a prefill that was
// given up a part counts.
func (x *Prefilling) Took(d time.Duration) {
	if x.expected > 0 {
		x.pool.patience.learn(min(d, 2*x.Limit).Seconds() / x.expected)
	}
}
