package score

import (
	"math"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Rule chooses by the score. The zero value is ready; like a strategy it is not safe for concurrent use.
type Rule struct {
	keys []uint64 // one a row, of the request at hand
}

// Route chooses the worker of smallest score for r, names the next best as alternatives and says why. It declines if no
// score is a finite number.
func (u *Rule) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if len(u.keys) < len(workers) {
		u.keys = make([]uint64, len(workers))
	}
	c := common(r.Header, workers)
	longest, best := c.rank(workers, u.keys)
	if best[0] >= infinite {
		return sdk.Decline
	}
	smallest := int(best[0] & rowMask)
	row, left := smallest, sdk.Alternatives
	if limit := near(best[0]); best[1] <= limit {
		t := tie{request: &c, workers: workers, best: smallest, row: smallest}
		if best[len(best)-1] <= limit { // there may be more
			t.scan(u.keys[:len(workers)], limit)
		} else {
			t.each(best[1:], limit)
		}
		row = t.row
	}
	for _, k := range best {
		if i := int(k & rowMask); k < infinite && i != row && left > 0 {
			r.Then(i)
			left--
		}
	}
	return sdk.To(row).Because(reason(&workers[smallest], longest))
}

func reason(w *sdk.Worker, longest uint32) sdk.Reason {
	switch {
	case longest == 0:
		return sdk.ReasonCold
	case w.GPU+w.L1+w.L2 < longest:
		return sdk.ReasonLoad
	}
	return sdk.ReasonPrefix
}

// request is what the score takes from the header and from the fleet as a whole, the same for every row.
type request struct {
	l, block   float64 // prompt tokens, tokens a block
	token      float64 // c1 + c2*L: seconds to prefill the prompt's last token on a worker of slowness 1
	again      float64 // c1 + c2*L/2: seconds to compute one token again
	halfC2     float64
	bw1, bw2   float64 // seconds a token from a tier; 0 = no such tier
	lambda     float64
	wait       float64 // mean of W
	flight     float64 // mean in flight per unit of weight
	halfFlight float64 // .5 / max(1, flight)
}

func common(h *abi.Header, workers []sdk.Worker) request {
	wait, weight := 0., float64(len(workers))
	flight := uint64(0)
	for i := range workers {
		w := &workers[i]
		wait += w.Wait
		flight += uint64(w.InFlight)
		if w.Weight != 1 && w.Weight > 0 {
			weight += float64(w.Weight) - 1
		}
	}
	l, c1, halfC2 := float64(h.PromptTokens), float64(h.C1), .5*float64(h.C2)
	mean := float64(flight) / weight
	least := mean
	if least < 1 {
		least = 1
	}
	return request{
		l: l, block: float64(h.BlockTokens), token: c1 + 2*float64(halfC2*l), again: c1 + float64(halfC2*l), halfC2: halfC2,
		bw1: float64(h.InvBWL1), bw2: float64(h.InvBWL2), lambda: float64(h.Lambda),
		wait: wait / float64(len(workers)), flight: mean, halfFlight: .5 / least,
	}
}

// A key is a row's score as the bits of a float64, which order as integers do while it is positive, its last 16 bits
// replaced by the row: so that the smallest few are kept by integer minima, without a branch. Scores closer than one
// part in 2^36 are therefore equal, and what is negative or no number is larger than infinite.
const (
	rowBits  = 16
	rowMask  = 1<<rowBits - 1
	infinite = 0x7ff << 52
)

// rank writes the key of each row and returns the longest match of any row and the smallest keys.
//
// It is one loop without calls and nearly without branches: in the wasm of the Go compiler each taken branch goes
// through a jump table at the function's head (256 rows, tiers set: 38 us with ifs, 20 without). x + |x| is 2*max(0,
// x).
func (c *request) rank(
	workers []sdk.Worker, keys []uint64,
) (longest uint32, best [1 + sdk.Alternatives]uint64) {
	l, block, token, again, halfC2 := c.l, c.block, c.token, c.again, c.halfC2
	bw1, lambda, wait, halfFlight := c.bw1, c.lambda, c.wait, c.halfFlight
	k0, k1, k2, k3 := uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64)
	keys = keys[:len(workers)]
	for i := range workers {
		w := &workers[i]
		gpu, l1, l2 := w.GPU, w.L1, w.L2
		longest = max(longest, gpu+l1+l2)
		miss := l - float64(float64(int64(gpu))*block)       // tokens of the prompt that are not on the GPU
		n := miss - float64(float64(int64(l1+l2))*block) - 1 // tokens to compute, less one
		n = 1 + .5*(n+math.Abs(n))
		m := w.Slow
		y := float64(m*n) * (token - float64(halfC2*n))
		out, back := miss-float64(w.FreeGPU), m*again
		if bw1 != 0 {
			h1 := float64(float64(int64(l1)) * block)
			y += float64(h1*bw1) + float64(float64(float64(int64(l2))*block)*c.bw2)
			if lost := miss - h1 - float64(w.FreeL1); lost > 0 {
				if c.bw2 != 0 {
					back = c.bw2
				}
				y += 2 * float64(float64(lost*float64(w.ReuseL1))*back)
			}
			back = bw1
		}
		y += float64(float64((out+math.Abs(out))*float64(w.ReuseGPU)) * back)
		idle := .9 - float64(1.3*w.Load)
		idle = .1 + .5*(idle+math.Abs(idle)) // 1 - min(.9, 1.3*rho)
		flight := float64(int64(w.InFlight))
		if w.Weight != 1 || w.State&abi.RowSlowStart != 0 {
			flight = c.adjusted(w)
		}
		s := float64(2*w.Wait) + y + float64(float64(lambda/idle*y)*(wait+y))
		s *= 1 + float64(flight*halfFlight)
		k := math.Float64bits(s)&^rowMask | uint64(i)
		keys[i] = k
		if k < k3 {
			k, k0 = max(k, k0), min(k, k0)
			k, k1 = max(k, k1), min(k, k1)
			k2, k3 = min(k, k2), max(k, k2)
		}
	}
	return longest, [...]uint64{k0, k1, k2, k3}
}
