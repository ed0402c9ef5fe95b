package route

import (
	"slices"
	"strconv"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/score"
)

// candidate describes a worker by its row.
func candidate(r *abi.Row, id string, scale *score.Scale) record.Candidate {
	t := scale.Terms(r)
	return record.Candidate{Worker: id, State: "up", GPU: r.GPU, L1: r.L1, L2: r.L2, InFlight: r.InFlight, Wait: r.Wait,
		Prefill: t.Prefill, Eviction: t.Eviction, Overflow: t.Overflow, Adapter: t.Adapter, Delay: t.Delay, Tilt: t.Tilt,
		Cost: t.Cost, FreeGPU: r.FreeGPU, Slowness: r.Slow, Load: r.Load, SlowStart: r.State&abi.RowSlowStart != 0,
		Live: r.Live()}
}

// absent describes a worker that has no row. only are those that the filters have left.
func absent(s *worker.Stats, model string, need int, only *worker.Allowed) record.Candidate {
	return record.Candidate{Worker: s.ID, State: s.State.String(), Skipped: skipped(s, model, need, only),
		InFlight: uint32(s.InFlight + s.Theirs), Wait: s.Wait, Slowness: s.Slow, Load: s.Load,
		SlowStart: s.SlowStart}
}

// skipped returns why a worker was no candidate for so many tokens of the model.
func skipped(s *worker.Stats, model string, need int, only *worker.Allowed) string {
	length := 0
	if i := slices.Index(s.Models, model); i >= 0 && i < len(s.Lengths) {
		length = s.Lengths[i]
	}
	switch {
	case !s.Up && s.Why != "":
		return s.State.String() + ": " + s.Why
	case !s.Up:
		return s.State.String()
	case model != "" && s.Models != nil && !slices.Contains(s.Models, model):
		return "does not list the model"
	case !only.Has(s.Slot):
		return "a filter leaves it out: see filters"
	case s.Full:
		return "has no room: max_in_flight, max_wait_seconds or max_kv_use"
	case length > 0 && length < need:
		return "too short: its max_model_len is " + strconv.Itoa(length)
	case s.SlowStart:
		return "begins slowly: not its turn"
	}
	return "was tried, or came up since"
}
