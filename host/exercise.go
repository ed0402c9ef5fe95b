package host

import (
	"fmt"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Exercise makes the calls beside wp_pick that the module wants, and its upkeep, with made-up records about the workers
// of f: of each kind one at least, and of a request that nobody has answered. It returns the first failure. It is for a
// strategy of one slot, between its picks.
func (s *Strategy) Exercise(f *Frame) error {
	sl, n := &s.instances.slots[0], &s.notices
	if !sl.borrow(s.program) {
		return nil // the keeper has it
	}
	n.Tick(time.Now())
	for i := range f.Rows {
		o := abi.Outcome{Seq: f.Header.Seq, Key: f.Rows[i].Key, Worker: f.Rows[i].Worker, Status: 200,
			PromptTokens: uint32(i) * 100, CachedTokens: int32(i) - 1, OutputTokens: int32(i) - 1, TTFT: float32(i) / 8,
			Seconds: float32(i), Attempts: 1}
		if i%4 == 2 {
			o.Key, o.Status, o.TTFT = 0, 503, -1
		}
		n.FirstToken(&o)
		n.Complete(&o)
		n.KVEvents([]abi.KVEvent{{Key: f.Rows[i].Key, Worker: f.Rows[i].Worker, Hash: f.Header.Random + uint64(i),
			Kind: abi.EventStored + uint32(i)%abi.EventCleared, Tier: uint32(i) % (abi.TierL2 + 1), Tokens: 16}})
	}
	err := sl.in.maintain()
	for err == nil && n.due() {
		next, _ := n.next(s.layout.FrameSize(sl.in.room))
		err = sl.in.notify(next)
	}
	if err == nil && n.wants&abi.WantClassify != 0 {
		var class uint64
		class, err = sl.in.classify(f)
		if _, share := abi.UnpackClass(class); err == nil && !(share >= 0) {
			err = fmt.Errorf("host: module %q: wp_classify gives the key a share of %v; give a number above 0, or 0 for none",
				s.name, share)
		}
	}
	if err == nil && n.wants&abi.WantPlan != 0 {
		_, err = sl.in.plan([]abi.Talk{{Value: .9, Returns: .9, Tokens: 8000, Session: f.Header.Session}, {Tokens: 1}})
	}
	if err == nil && n.wants&abi.WantFilter != 0 {
		f.prepare()
		_, _, err = sl.in.run(f, true)
	}
	if err != nil {
		s.discard(sl)
		return err
	}
	s.give(sl)
	return nil
}
