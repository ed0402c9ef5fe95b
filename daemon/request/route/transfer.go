package route

import (
	"math"
	"sync"
	"time"
)

// transfer learns what it takes to bring the KV of a token from a prefiller. A sample is the time from the request to
// the worker that answers until its first byte, less what that worker computes and has queued. So it has the requests'
// own way in it, and the rest of the step that ran: they are a price of the second worker too.
//
// The n-th sample counts 1/n, from the 32nd on 1/32. From the 8th on none counts for more than one and a half times
// what is known: it waited for a prompt that the worker computed itself. Else such a wait would make transfers look
// slow, so that workers compute more prompts themselves, and so on (pd-8k of the lab).
//
// A rate that no transfer confirms expires: otherwise a rate that was learnt in a bad minute would keep all prompts
// from prefillers, so that it would never be learnt again.
type transfer struct {
	mu      sync.Mutex // guards all below
	seconds float64    // a token
	samples float64    // those of long ago counted less
	at      time.Time  // of the last one
}

const (
	fadeTime     = 300.0 // seconds in which samples fade to 1/e
	fewSamples   = 2.0   // below so many nothing is known: the next prompts are sent, whatever it takes
	minHanded    = 256   // tokens of a sample; of fewer the way of the request is all that there is
	maxCount     = 32
	maxOutlier   = 1.5
	leastSeconds = 1e-9 // a token, as for kv_transfer_rate
	mostSeconds  = 1e-2
)

// learn takes the seconds and the tokens of a transfer.
func (t *transfer) learn(seconds float64, tokens int, now time.Time) {
	if tokens < minHanded {
		return
	}
	x := min(mostSeconds, max(leastSeconds, seconds/float64(tokens)))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.samples = t.left(now)
	if t.samples >= 8 {
		x = min(x, maxOutlier*t.seconds)
	}
	t.samples++
	t.seconds += (x - t.seconds) / min(maxCount, t.samples)
	t.at = now
}

// left is how many samples are left of those that were taken.
func (t *transfer) left(now time.Time) float64 {
	return min(t.samples, 2*maxCount) * math.Exp(-max(0, now.Sub(t.at).Seconds())/fadeTime)
}

// rate returns the tokens a second, 0 if that is not known.
func (t *transfer) rate(now time.Time) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left(now) < fewSamples {
		return 0
	}
	return 1 / t.seconds
}
