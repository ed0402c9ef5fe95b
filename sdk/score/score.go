package score

import (
	"math"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
)

// View says which of a row's match counts are believed.
type View int

const (
	// Tiers believes GPU, L1 and L2: the best that the host has.
	Tiers View = iota
	// Predicted believes the routed history alone, all of it on the GPU.
	Predicted
)

// Route chooses the worker of smallest score for r, names the next best as alternatives and says why.
func Route(r *sdk.Request, workers []sdk.Worker, v View) sdk.Decision {
	var k sdk.Ranking
	c := common(r.Header, workers)
	longest := uint32(0)
	for i := range workers {
		w := &workers[i]
		b0, b1, b2 := w.GPU, w.L1, w.L2
		if v == Predicted {
			b0, b1, b2 = w.Predicted, 0, 0
		}
		if held := b0 + b1 + b2; held > longest {
			longest = held
		}
		k.Enter(i, w, c.score(w, b0, b1, b2))
	}
	d := k.Choose(r)
	return d.Because(reason(&workers[d.Row()], v, longest))
}

func reason(w *sdk.Worker, v View, longest uint32) sdk.Reason {
	switch {
	case v == Predicted:
		return sdk.ReasonPredicted
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
	c1, c2     float64
	again      float64 // seconds to compute one token again, on a worker of slowness 1
	bw1, bw2   float64 // seconds a token from a tier; 0 = no such tier
	lambda     float64
	wait       float64 // mean of W
	flight     float64 // mean in flight per unit of weight
	halfFlight float64 // .5 / max(1, flight)
}

func common(h *abi.Header, workers []sdk.Worker) request {
	c := request{
		l: float64(h.PromptTokens), block: float64(h.BlockTokens),
		c1: float64(h.C1), c2: float64(h.C2),
		bw1: float64(h.InvBWL1), bw2: float64(h.InvBWL2),
		lambda: float64(h.Lambda),
	}
	c.again = c.c1 + float64(c.c2*c.l)/2
	var flight uint64
	var weight float64
	for i := range workers {
		w := &workers[i]
		c.wait += w.Wait
		flight += uint64(w.InFlight)
		if w.Weight > 0 {
			weight += float64(w.Weight)
		} else {
			weight++
		}
	}
	c.wait /= float64(len(workers))
	c.flight = float64(flight) / weight
	least := c.flight
	if least < 1 {
		least = 1
	}
	c.halfFlight = .5 / least
	return c
}

// inFlight is what the worker has in flight per unit of weight, or what a worker in slow start is taken to have.
func (c *request) inFlight(w *sdk.Worker) float64 {
	n := sdk.PerWeight(float64(w.InFlight), w)
	if w.State&abi.RowSlowStart != 0 {
		n = float64(2*n) + c.flight + 2
	}
	return n
}

// score is the cost of the request on w, of whose blocks b0, b1 and b2 are held on the GPU and in the tiers below.
func (c *request) score(w *sdk.Worker, b0, b1, b2 uint32) float64 {
	h0, h1, h2 := float64(b0)*c.block, float64(b1)*c.block, float64(b2)*c.block
	n := c.l - h0 - h1 - h2
	if n < 1 {
		n = 1
	}
	y := float64(w.Slow*(float64(c.c1*n)+float64(float64(c.c2*n)*(c.l-n/2)))) + float64(h1*c.bw1) + float64(h2*c.bw2)
	if out := c.l - h0 - float64(w.FreeGPU); out > 0 {
		back := c.bw1
		if back == 0 {
			back = w.Slow * c.again
		}
		y += 2 * float64(float64(out*float64(w.ReuseGPU))*back)
	}
	if c.bw1 != 0 {
		if out := c.l - h0 - h1 - float64(w.FreeL1); out > 0 {
			back := c.bw2
			if back == 0 {
				back = w.Slow * c.again
			}
			y += 2 * float64(float64(out*float64(w.ReuseL1))*back)
		}
	}
	busy := 1.3 * w.Load
	if busy > .9 {
		busy = .9
	}
	price := c.lambda / (1 - busy)
	s := float64(2*w.Wait) + y + float64(float64(price*y)*(c.wait+y))
	s *= 1 + float64(c.inFlight(w)*c.halfFlight)
	if s <= math.MaxFloat64 {
		return s
	}
	return math.Inf(1)
}
