package score

import (
	"math"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Terms is one row's score, term by term, as doc.go writes it. Price and the strategy compute the sum alone, and
// faster; a test holds them together.
type Terms struct {
	Wait     float64 // 2W: seconds of prefill queued there, twice
	Prefill  float64 // P: seconds to compute what it does not hold, and to bring what lies in its slower tiers
	Eviction float64 // 2E: seconds that others lose by what the prompt pushes out, twice
	Overflow float64 // O: seconds of what is computed again as its KV is full, more than on the roomiest worker
	Adapter  float64 // A: seconds until the request's LoRA adapter runs there
	Later    float64 // T: seconds that the further turns of a session that begins will wait there
	Delay    float64 // D: seconds that answers take longer for it
	Future   float64 // seconds that those who come meanwhile wait for it
	Tilt     float64 // factor on P, 2E, O, T and A, for what is in flight there; half as far from 1 on the wait
	Cost     float64 // the sum, tilted: the smallest wins
}

// Price writes into Cost of each row what a strategy would compute as its score, to the bits that decide. It is for a
// host whose strategy wants that ([Rule].ByCost). Prefillers behind the others are compared among themselves.
func Price(h *abi.Header, rows []abi.Row) {
	n := len(rows) - int(h.Prefillers)
	priceAll(h, rows[:n])
	if n < len(rows) {
		alone := *h
		alone.LeftOut = 0 // the means are those of the others
		priceAll(&alone, rows[n:])
	}
}

// priceAll is Price of rows that are compared with each other.
func priceAll(h *abi.Header, rows []abi.Row) {
	c := common(h)
	c.survey(rows)
	var keys [64]uint64
	for len(rows) > 0 {
		some := rows[:min(len(rows), len(keys))]
		c.rank(some, keys[:])
		for i := range some {
			some[i].Cost = math.Float64frombits(keys[i] &^ rowMask)
		}
		rows = rows[len(some):]
	}
}

// Scale is what the terms of all rows share.
type Scale struct {
	header       *abi.Header
	wait, flight float64 // means over the rows; in flight per unit of weight
	single       float64 // requests that a prompt token in flight counts as
	gate         float64 // of the tilt
	slow, price  float64 // mean slowness, and 2*K
	fits         float64 // tokens of KV of the request that the roomiest worker has room for
}

// NewScale returns the scale of a request and its rows. The prefillers behind the others do not count.
func NewScale(h *abi.Header, rows []abi.Row) Scale {
	s := Scale{header: h}
	rows = rows[:len(rows)-int(h.Prefillers)]
	weight, load, held, room, alike, most := 0., 0., uint64(0), uint64(0), true, math.Inf(-1)
	for i := range rows {
		r := &rows[i]
		most = max(most, r.Room())
		held, room = held+uint64(r.FlightTokens), room+uint64(r.KVTokens)
		alike = alike && r.Weight == 1 && !r.SlowStart()
		s.wait, s.slow, load = s.wait+r.Wait, s.slow+r.Slow, load+r.Load
		s.flight += float64(r.InFlight)
		weight += weightOf(r)
	}
	s.fits = min(h.Need(), most)
	n := float64(max(1, len(rows)))
	if sum := s.slow + load; sum-sum != 0 {
		s.slow, load = sound(rows)
	}
	s.wait, s.slow, s.price = s.wait/n, s.slow/n, price(float64(h.Lambda), load/n)
	if held > 0 {
		s.single = s.flight / float64(held)
	}
	if weight > 0 {
		s.flight /= weight
	}
	s.gate = 1
	if alike {
		s.gate = gate(held, room, s.flight)
	}
	if h.LeftOut > 0 {
		c := request{lambda: float64(h.Lambda)}
		c.means(h)
		s.flight, s.single, s.gate, s.wait, s.slow, s.price = c.flight, c.single, open(h), c.wait, c.slow, c.price
	}
	return s
}

// Sums returns the sums over rows of which a scale is made, for a caller that keeps them.
func (s *Scale) Sums() [7]float64 {
	return [...]float64{s.wait, s.flight, s.single, s.gate, s.slow, s.price, s.fits}
}

// ScaleOf returns the scale of a request and of sums that Sums has returned.
func ScaleOf(h *abi.Header, sums [7]float64) Scale {
	return Scale{header: h, wait: sums[0], flight: sums[1], single: sums[2], gate: sums[3], slow: sums[4], price: sums[5],
		fits: sums[6]}
}

// Terms returns the terms of a row.
func (s *Scale) Terms(r *abi.Row) Terms {
	h := s.header
	length, c1, c2, block := float64(h.PromptTokens), float64(h.C1), float64(h.C2), float64(h.BlockTokens)
	bw1, bw2 := float64(h.InvBWL1), float64(h.InvBWL2)
	gpu, l1 := float64(r.GPU)*block, float64(r.L1)*block
	t, fleet := Terms{Wait: 2 * r.Wait, Prefill: h.Prefill(r)}, s.slow*h.Compute(r)
	again := r.Slow * (c1 + c2*length/2)
	evicted := max(0, length-gpu-float64(r.FreeGPU)) * float64(r.ReuseGPU)
	if bw1 == 0 {
		t.Eviction = 2 * evicted * again
	} else {
		back := again
		if bw2 > 0 {
			back = bw2
		}
		t.Eviction = 2 * (evicted*bw1 + max(0, length-gpu-l1-float64(r.FreeL1))*float64(r.ReuseL1)*back)
	}
	t.Overflow = min(max(0, s.fits-r.Room()), length) * again
	c := request{turns: following(h)}
	t.Later = c.later(r)
	t.Adapter = r.AdapterLoad()
	work := t.Prefill + t.Eviction + t.Overflow + t.Later + t.Adapter
	if !idles(r) {
		t.Future = s.price * fleet * (s.wait + fleet)
	}
	mine := max(float64(r.InFlight), float64(r.FlightTokens)*s.single) / weightOf(r)
	if r.State&abi.RowSlowStart != 0 {
		mine = 2*mine + s.flight + 2
	}
	t.Tilt = 1 + reach*s.gate*mine/max(1, s.flight)
	t.Delay = r.Delay
	t.Cost = t.Wait*(1+t.Tilt)/2 + t.Future + t.Delay + work*t.Tilt
	return t
}

// weightOf is a row's weight; one that is not set counts 1.
func weightOf(r *abi.Row) float64 {
	if r.Weight > 0 {
		return float64(r.Weight)
	}
	return 1
}
