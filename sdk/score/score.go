package score

import (
	"math"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Rule chooses by the score. The zero value is ready; like a strategy it is not safe for concurrent use.
type Rule struct {
	// ByCost takes the scores that the host has computed, [sdk.Worker].Cost, where it has: they are the same. For a
	// strategy that wants them ([sdk.WantCost]) and leaves the workers as they came.
	ByCost bool

	keys []uint64 // one a row, of the request at hand
}

// Route chooses the worker of smallest score for r, names the next best as alternatives and gives the reason. It
// declines if no score is a finite number.
func (u *Rule) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if len(u.keys) < len(workers) {
		u.keys = make([]uint64, len(workers))
	}
	c := common(r.Header)
	var longest uint32
	var best [1 + sdk.Alternatives]uint64
	if u.ByCost && len(workers) > 0 && workers[0].Cost > 0 {
		longest, best = byCost(workers, u.keys)
	} else {
		c.survey(workers)
		longest, best = c.rank(workers, u.keys)
	}
	if best[0] >= infinite {
		return sdk.Decline
	}
	smallest := int(best[0] & rowMask)
	row, left := smallest, sdk.Alternatives
	if best[1] <= far(best[0]) {
		t := tie{request: &c, workers: workers, best: smallest}
		limit := t.near(best[0])
		t.find(u.keys[:len(workers)], best[1:], best[len(best)-1] <= limit, limit) // many: there may be more than those
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

// request is what the score takes from the header, and from the fleet as a whole: the same for every row.
type request struct {
	l, block float64 // prompt tokens, tokens a block
	token    float64 // c1 + c2*L: seconds to prefill the prompt's last token on a worker of slowness 1
	again    float64 // c1 + c2*L/2: seconds to compute one token again
	halfC2   float64
	bw1, bw2 float64 // seconds a token from a tier; 0 = no such tier
	lambda   float64

	wait   float64 // mean of W; this and the others are survey's
	slow   float64 // mean of m
	price  float64 // 2*K
	flight float64 // mean in flight per unit of weight
	single float64 // requests that a prompt token in flight counts as: 1 / the mean prompt in flight
	tilt   float64 // for one request in flight: reach * gate / max(1, flight)

	need float64 // tokens of KV that the request will hold
	fits float64 // of these, what the roomiest worker has room for, need at most
	full bool    // some worker has no room for all of them

	loads bool // the request's adapter is to be loaded on some worker

	of *abi.Header // whose means are the fleet's; nil = they are the rows'

	turns float64 // that will follow where a session begins; 0 = none begins, or a short one
}

// The tilt, and where it comes from.
const (
	reach = .75 // of a worker with as many in flight as the mean
	calm  = .1  // of the fleet's KV in flight: up to it there is no tilt
	rise  = .3  // from there to all of it
	few   = 8   // in flight on a mean worker: up to it there is no tilt
	crowd = 16  // from there to all of it
)

// gate returns how much of the tilt there is, 0 to 1: by the part of the KV that prompts in flight hold, or by how many
// are in flight on a mean worker, whichever is more.
func gate(held, room uint64, mean float64) float64 {
	g := (mean - few) * (1. / crowd)
	if byKV := (float64(held)/float64(room) - calm) * (1 / rise); g < byKV {
		g = byKV
	}
	if room == 0 || g > 1 { // nobody knows the KV
		return 1
	}
	if g < 0 {
		return 0
	}
	return g
}

func common(h *abi.Header) request {
	l, c1, halfC2 := float64(h.PromptTokens), float64(h.C1), .5*float64(h.C2)
	r := request{
		l: l, block: float64(h.BlockTokens), token: c1 + 2*float64(halfC2*l), again: c1 + float64(halfC2*l), halfC2: halfC2,
		bw1: float64(h.InvBWL1), bw2: float64(h.InvBWL2), lambda: float64(h.Lambda),
		need: h.Need(), turns: following(h),
	}
	if h.LeftOut > 0 {
		r.of = h
	}
	return r
}

// A session begins with its first two requests: agents send a small one, for a title, before or together with the one
// that has their tools. The second goes on where the first has left more of it than any other worker has. A session
// that goes on for fewer turns than long is a chat, which gains no more than the noise.
const (
	begins = 2
	long   = 5
)

// following returns the turns that will follow a request where its session begins.
func following(h *abi.Header) float64 {
	if h.Turn < 1 || h.Turn > begins || h.ExpectedTurns < long {
		return 0
	}
	if h.Turn > 1 && h.BestRow >= 0 && h.BestRow == h.Last {
		return 0
	}
	return float64(int64(h.ExpectedTurns))
}

// later returns the seconds that a session's further turns will wait on a worker: each for what is in flight there, at
// the mean work of what was sent there lately.
func (c *request) later(w *sdk.Worker) float64 {
	mean := 30 * w.Load / float64(w.Lately)
	if !(mean > 0) || mean > 60 {
		return 0
	}
	return float64(c.turns*float64(int64(w.InFlight))) * mean
}

// survey adds what is known of the fleet. What is equal to the best (see tie) is found without it.
func (c *request) survey(workers []sdk.Worker) {
	wait, slow, load, weight := 0., 0., 0., float64(len(workers))
	flight, held, room, state := uint64(0), uint64(0), uint64(0), uint32(0)
	alike, least, most := true, math.Inf(1), math.Inf(-1)
	for i := range workers {
		w := &workers[i]
		left := w.Room()
		if left < least {
			least = left
		}
		if left > most {
			most = left
		}
		wait, slow, load = wait+w.Wait, slow+w.Slow, load+w.Load
		flight += uint64(w.InFlight)
		state |= w.State
		held, room = held+uint64(w.FlightTokens), room+uint64(w.KVTokens)
		if w.Weight != 1 || w.State&abi.RowSlowStart != 0 {
			alike = false
			if w.Weight > 0 {
				weight += float64(w.Weight) - 1
			}
		}
	}
	c.fits, c.full, c.loads = c.need, least < c.need, state>>abi.RowLoadShift != 0
	if most < c.need {
		c.fits = most
	}
	mean := float64(flight) / weight
	open := 1.
	if alike {
		open = gate(held, room, mean)
	}
	count := mean
	if count < 1 {
		count = 1
	}
	if held > 0 {
		c.single = float64(flight) / float64(held)
	}
	c.flight, c.tilt = mean, reach*open/count
	n := float64(len(workers))
	if sum := slow + load; sum-sum != 0 {
		slow, load = sound(workers)
	}
	c.wait, c.slow, c.price = wait/n, slow/n, price(c.lambda, load/n)
	if c.of != nil {
		c.means(c.of)
	}
}

// means takes the means of all workers, of which the rows are some.
func (c *request) means(h *abi.Header) {
	c.flight, c.single, c.tilt = float64(h.MeanFlight), 0, reach*open(h)/math.Max(1, float64(h.MeanFlight))
	if h.MeanPrompt > 0 {
		c.single = 1 / float64(h.MeanPrompt)
	}
	c.wait, c.slow, c.price = float64(h.MeanWait), float64(h.MeanSlow), price(c.lambda, float64(h.MeanLoad))
}

// open is gate by the means of all workers.
func open(h *abi.Header) float64 {
	if h.Uneven != 0 {
		return 1
	}
	const parts = 1 << 32
	return gate(uint64(float64(h.KVInFlight)*parts), parts, float64(h.MeanFlight))
}

// price is 2*K, for a load that is the fleet's mean.
func price(lambda, load float64) float64 {
	slack := .9 - float64(1.3*load)
	return 2 * lambda / (.1 + .5*(slack+math.Abs(slack))) // 1 - min(.9, 1.3*load)
}

// overflow returns the seconds by which a worker without room for the request is worse than the roomiest one. What of
// the request's KV finds no room here, and would there, pushes others out or waits for them: as much is computed again.
func (c *request) overflow(w *sdk.Worker) float64 {
	over := c.fits - w.Room()
	if !(over > 0) {
		return 0
	}
	if over > c.l {
		over = c.l
	}
	return float64(over * float64(w.Slow*c.again))
}

// A key is a row's score as the bits of a float64, which order as integers do while it is positive, its last 16 bits
// replaced by the row: so that the smallest few are kept by integer minima, without a branch. Scores closer than one
// part in 2^36 are therefore equal, and what is negative or no number is larger than infinite.
const (
	rowBits  = 16
	rowMask  = 1<<rowBits - 1
	infinite = 0x7ff << 52
)

// byCost is rank with the scores that the host has computed, four rows at a time: each taken branch costs as much as a
// row (see rank).
func byCost(workers []sdk.Worker, keys []uint64) (longest uint32, best [1 + sdk.Alternatives]uint64) {
	k0, k1, k2, k3 := uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64), uint64(math.MaxUint64)
	keys = keys[:len(workers)]
	i := 0
	for ; i+4 <= len(workers); i += 4 {
		w, key := workers[i:i+4], keys[i:i+4]
		longest = max(longest, w[0].GPU+w[0].L1+w[0].L2, w[1].GPU+w[1].L1+w[1].L2,
			w[2].GPU+w[2].L1+w[2].L2, w[3].GPU+w[3].L1+w[3].L2)
		a := math.Float64bits(w[0].Cost)&^rowMask | uint64(i)
		b := math.Float64bits(w[1].Cost)&^rowMask | uint64(i+1)
		c := math.Float64bits(w[2].Cost)&^rowMask | uint64(i+2)
		d := math.Float64bits(w[3].Cost)&^rowMask | uint64(i+3)
		key[0], key[1], key[2], key[3] = a, b, c, d
		if min(a, b, c, d) < k3 {
			k0, a = min(k0, a), max(k0, a)
			k1, a = min(k1, a), max(k1, a)
			k2, k3 = min(k2, a), min(k3, max(k2, a))
			k0, b = min(k0, b), max(k0, b)
			k1, b = min(k1, b), max(k1, b)
			k2, k3 = min(k2, b), min(k3, max(k2, b))
			k0, c = min(k0, c), max(k0, c)
			k1, c = min(k1, c), max(k1, c)
			k2, k3 = min(k2, c), min(k3, max(k2, c))
			k0, d = min(k0, d), max(k0, d)
			k1, d = min(k1, d), max(k1, d)
			k2, k3 = min(k2, d), min(k3, max(k2, d))
		}
	}
	for ; i < len(workers); i++ {
		w := &workers[i]
		longest = max(longest, w.GPU+w.L1+w.L2)
		k := math.Float64bits(w.Cost)&^rowMask | uint64(i)
		keys[i] = k
		k0, k = min(k0, k), max(k0, k)
		k1, k = min(k1, k), max(k1, k)
		k2, k3 = min(k2, k), min(k3, max(k2, k))
	}
	return longest, [...]uint64{k0, k1, k2, k3}
}

// rank writes the key of each row and returns the longest match of any row and the smallest keys.
//
// It is one loop without calls and nearly without branches: in the wasm of the Go compiler each taken branch goes
// through a jump table at the function's head (256 rows, tiers set: 38 us with ifs, 20 without). x + |x| is 2*max(0,
// x).
func (c *request) rank(
	workers []sdk.Worker, keys []uint64,
) (longest uint32, best [1 + sdk.Alternatives]uint64) {
	l, block, token, again, halfC2 := c.l, c.block, c.token, c.again, c.halfC2
	bw1, price, slow, wait, tilt, single := c.bw1, c.price, c.slow, c.wait, c.tilt, c.single
	full, fresh, loads := c.full, c.turns > 0, c.loads
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
		compute := n * (token - float64(halfC2*n))
		y, fleet := float64(m*compute), float64(slow*compute) // seconds there, and on a mean worker
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
		if full {
			y += c.overflow(w)
		}
		if fresh {
			y += c.later(w)
		}
		if loads {
			y += w.AdapterLoad()
		}
		flight, prompts := float64(int64(w.InFlight)), float64(float64(int64(w.FlightTokens))*single)
		flight = .5 * (flight + prompts + math.Abs(flight-prompts))
		if w.Weight != 1 || w.State&(abi.RowSlowStart|abi.RowJoins) != 0 {
			flight = c.adjusted(w, flight)
			if idles(w) {
				fleet = 0
			}
		}
		t := float64(flight * tilt)
		s := float64(w.Wait*(2+t)) + float64(float64(price*fleet)*(wait+fleet)) + float64(y*(1+t)) + w.Delay
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

// work returns Y of one row: its score for a request in an empty fleet, less its wait and delay.
func (c *request) work(row []sdk.Worker) float64 {
	alone, key := *c, [1]uint64{}
	alone.price, alone.tilt, alone.full, alone.turns = 0, 0, false, 0
	alone.loads = true // the scores may have been given, and the rows not surveyed
	_, best := alone.rank(row, key[:])
	return math.Float64frombits(best[0]&^rowMask) - float64(2*row[0].Wait) - row[0].Delay
}
