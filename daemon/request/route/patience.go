package route

import (
	"math"
	"sync"
	"time"
)

// patience learns how long prefills take, by which a prompt is given up at a prefiller that may hang. It is TCP's rule
// for a packet that may be lost (RFC 6298): a mean, and four times the mean deviation from it. So a pool whose prefills
// take what is expected finds a hang soon, and one of slow engines, or of busy ones, waits for longer.
//
// The times are taken as parts of three measures, and the one counts from which they deviate least: what is expected of
// the prompt and of all that waits before it, of the prompt alone, and a second. An engine that computes many prompts
// side by side has nobody wait, so that by the first measure each time is another part. By the last one alone a long
// prompt would be given up where short ones are usual.
type patience struct {
	mu sync.Mutex // guards by
	by [measures]deviation
}

const measures = 3

// deviation is how far samples are from their mean.
type deviation struct{ mean, spread float64 }

const (
	// leastPatience is above the noise of a network and of an engine's steps.
	leastPatience = 500 * time.Millisecond
	firstPatience = 3.0 // times what is expected, while nothing is known

	// An engine whose speed is not known may be far slower than is assumed.
	blindPatience = 10 * time.Second
)

// learn takes the seconds of a prefill, whose measures were these.
func (p *patience) learn(seconds float64, by *[measures]float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.by {
		d, x := &p.by[i], seconds/by[i]
		if d.mean == 0 {
			*d = deviation{mean: x, spread: x / 2}
			continue
		}
		d.spread += (math.Abs(x-d.mean) - d.spread) / 4
		d.mean += (x - d.mean) / 8
	}
}

// limit returns how many seconds a prefill of these measures may take, and whether that has been learnt.
func (p *patience) limit(by *[measures]float64) (seconds float64, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := 0
	for i, d := range p.by {
		if d.spread*p.by[best].mean < p.by[best].spread*d.mean {
			best = i
		}
	}
	if d := p.by[best]; d.mean > 0 {
		return by[best] * (d.mean + 4*d.spread), true
	}
	return firstPatience * by[0], false
}

// Prefilling is a prompt at a prefiller.
type Prefilling struct {
	// Limit is how long the prefiller has. The worker that answers would need as long; then it computes the prompt itself.
	Limit time.Duration

	pool  *Pool
	by    [measures]float64
	blind bool // nothing is known of the speed of the pool's workers
}

// Prefills returns what is expected of the first prefiller of the order. Call it before Send.
func Prefills(c *Choice) Prefilling {
	x := Prefilling{pool: c.pool, by: [measures]float64{leastExpected, leastExpected, 1}}
	if row := c.order.first(); row >= 0 {
		r := &c.fleet.frame.Rows[row]
		x.by[1] = max(leastExpected, c.fleet.frame.Header.Prefill(r))
		x.by[0] = x.by[1]
		if !c.pool.Workers.MayHang(c.fleet.workers[row]) { // else all that waits there waits in vain
			x.by[0] += r.Wait
		}
	}
	seconds, known := c.pool.patience.limit(&x.by)
	x.Limit = max(leastPatience, time.Duration(seconds*float64(time.Second)))
	if !known { // answers of decoders show it, too
		_, fleet := c.pool.Workers.Learnt(0)
		x.blind = fleet.Samples == 0
	}
	return x
}

// leastExpected bounds the seconds by which times are divided.
const leastExpected = 1e-3

// BeSure sets the limit for a prompt that cannot go on when it is given up, so that nothing would be learnt of it. Its
// request has that long until the first byte of its answer.
func (x *Prefilling) BeSure(timeout time.Duration) {
	if x.blind {
		x.Limit = max(x.Limit, min(blindPatience, timeout/2))
	}
}

// Took records how long the prefill took. An engine that stood still for a minute is no measure: of a prefill that was
// given up a part counts.
func (x *Prefilling) Took(d time.Duration) {
	x.pool.patience.learn(min(d, 2*x.Limit).Seconds(), &x.by)
}
