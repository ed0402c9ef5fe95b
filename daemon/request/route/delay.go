package route

import (
	"math"
	"slices"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Constants of an answer's delay. Half and 1.7 times of it change the lab's figures by 2 % at most.
const (
	usualStep  = .02 // seconds a token, while no worker's is known
	fullStep   = 2   // times as long, and one more, takes a step that reads a full KV cache
	manyWrites = 64  // answers that double a step where the size of the KV cache is not known
	mostBusy   = .9
)

// fillDelay fills Row.Delay in a pool whose prefillers answer too. The rows stand for the worker of that leg, and those
// of prefillers behind them for the prompt's.
func fillDelay(f *host.Frame, a *Ask, leg Leg) {
	if !a.Shared {
		return
	}
	choices := f.Choices()
	if leg == Prefill {
		choices = 0
	}
	delayAnswer(&f.Header, f.Rows[:choices])
	for i := range f.Rows[choices:] {
		row := &f.Rows[choices+i]
		row.Delay = f.Header.Prefill(row) * float64(writing(row))
	}
}

// addFar adds by how much a prefiller is worse that lacks the label which is near, if one has it.
func addFar(rows []abi.Row, p *worker.Pool, near string, far float64) {
	if near == "" {
		return
	}
	names, _ := p.Labels()
	bit, found := slices.BinarySearch(names, near)
	for i := range rows {
		if found && rows[i].Labels&(1<<bit) == 0 {
			rows[i].Delay += far
		}
	}
}

// delayAnswer fills by how much longer an answer takes at each worker than at one that does nothing else: an engine's
// step reads all KV that requests in flight there hold, and takes as long as the prefill that is in it.
//
// A prefiller counts as busy as all prefillers were if they computed all prompts of the pool, and no less because
// others compute some of them now. By its own load the fleet stays with answers everywhere, and then no prompt gains
// by another worker (pd-8k-15 of the lab).
func delayAnswer(h *abi.Header, rows []abi.Row) {
	step, load, prefillers := math.Inf(1), 0., 0
	for i := range rows {
		if x := float64(rows[i].TPOT); x > 0 {
			step = min(step, x)
		}
		load += rows[i].Load
		if rows[i].Prefills() {
			prefillers++
		}
	}
	if math.IsInf(step, 1) {
		step = usualStep
	}
	busy := min(mostBusy, load/float64(max(1, prefillers)))
	answer := step * float64(h.ExpectedOutput)
	for i := range rows {
		row := &rows[i]
		if row.KVTokens > 0 {
			row.Delay = answer * fullStep * float64(row.HeldTokens) / float64(row.KVTokens)
		} else {
			row.Delay = answer * float64(row.InFlight) / manyWrites
		}
		if row.Prefills() {
			row.Delay += answer * busy / (1 - busy)
		}
	}
}

// writing returns how many answers a worker is writing, about: some of those in flight wait for their prompts, here or
// at prefillers.
func writing(row *abi.Row) uint32 {
	if row.MetricsAge < 0 {
		return row.InFlight
	}
	return min(row.InFlight, row.Running)
}
