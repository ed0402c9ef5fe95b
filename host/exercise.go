package host

import (
	"fmt"
	"math"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Exercise calls what the module exports beside wp_pick, wanted or not, with made-up records about f. It returns the
// first failure. It is for a strategy of one slot, between its picks.
func (s *Strategy) Exercise(f *Frame) error {
	sl := &s.instances[0]
	if !sl.borrow() {
		return nil // the keeper has it
	}
	for _, e := range abi.Exports {
		if err := sl.in.exercise(e.Name, f); err != nil {
			s.discard(sl)
			return err
		}
	}
	s.give(sl)
	return nil
}

// exercise makes one call, if the module has it.
func (in *instance) exercise(export string, f *Frame) error {
	if in.mod.ExportedFunction(export) == nil {
		return nil
	}
	h := &f.Header
	switch export {
	case "wp_maint":
		return in.maintain()
	case "wp_tick":
		return in.notify(notice{export: export, argument: uint64(time.Now().UnixNano())})
	case "wp_classify":
		v, err := in.classify(f)
		_, weight := abi.UnpackClass(v)
		if share := float64(weight); err == nil && (math.IsNaN(share) || math.IsInf(share, 0) || share < 0) {
			err = fmt.Errorf("host: module %q: wp_classify gives the key a share of %v; give a number above 0, or 0 for none",
				in.program.name, weight)
		}
		return err
	case "wp_on_first_token", "wp_on_complete":
		var q queue[abi.Outcome]
		for i := range f.Rows {
			o := abi.Outcome{Seq: h.Seq, Now: h.Now, Model: h.Model, Session: h.Session, Tenant: h.Tenant, Caller: h.Caller,
				Key: f.Rows[i].Key, Worker: f.Rows[i].Worker, Status: 200, PromptTokens: h.PromptTokens, CachedTokens: -1,
				OutputTokens: -1, TTFT: float32(i) / 8, Seconds: float32(i), Attempts: 1}
			switch i % 4 { // one without any tokens, and one that nobody has answered
			case 1:
				o.PromptTokens, o.CachedTokens, o.OutputTokens = 0, 0, 0
			case 2:
				o.Key, o.Status, o.TTFT = 0, 503, -1
			}
			q.push(maxOutcomes, o)
		}
		b, n := q.next(in.program.layout.FrameSize(in.room) / abi.OutcomeSize)
		return in.notify(notice{export: export, records: b, argument: uint64(n)})
	case "wp_on_kv_event":
		var q queue[abi.KVEvent]
		for i := range f.Rows {
			q.push(maxEvents, abi.KVEvent{Key: f.Rows[i].Key, Hash: h.Random + uint64(i), Now: h.Now,
				Worker: f.Rows[i].Worker, Kind: abi.EventStored + uint32(i)%abi.EventCleared,
				Tier: uint32(i) % (abi.TierL2 + 1), Tokens: uint32(h.BlockTokens)})
		}
		b, n := q.next(in.program.layout.FrameSize(in.room) / abi.KVEventSize)
		return in.notify(notice{export: export, records: b, argument: uint64(n)})
	}
	return nil
}
