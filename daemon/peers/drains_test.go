package peers

import (
	"testing"
	"time"
)

// drainScene is three routers, each with a clock of its own that is off by minutes.
type drainScene struct {
	*fleet
	off []time.Duration
}

// second lets a second pass: each router sends what it has to say of drains, and hears the others.
func (s *drainScene) second(all bool) {
	s.pass(time.Second)
	for i, r := range s.routers {
		for _, d := range r.receiver.drains.take(all, s.now.Add(s.off[i])) {
			r.sender.QueueSession(d, s.now)
		}
		s.post(r, 0, false)
	}
	for _, r := range s.routers {
		s.deliver(r)
	}
}

func (s *drainScene) drains(r *router) bool {
	for _, w := range r.pool.Workers.Stats(s.now) {
		if w.ID == "w0" {
			return w.Drained
		}
	}
	s.t.Fatal("there is no w0")
	return false
}

func (s *drainScene) want(when string, on bool) {
	s.t.Helper()
	for i, r := range s.routers {
		if s.drains(r) != on {
			s.t.Errorf("%s: at router %d w0 drains: %v", when, i, !on)
		}
	}
}

// TestADrainIsEveryRouters: what an operator tells one router holds at all, the last word too where clocks differ, and
// at a router that starts later. What a stream keeps of an earlier time drains nothing.
func TestADrainIsEveryRouters(t *testing.T) {
	s := &drainScene{fleet: newFleet(t, 1, 3, 2, 1<<16), off: []time.Duration{5 * time.Minute, 0, -5 * time.Minute, 0}}
	s.second(false)
	s.want("at first", false)
	s.routers[0].pool.Workers.Drain("w0", true, s.now)
	s.second(false)
	s.want("drained at 0", true)
	s.routers[2].pool.Workers.Drain("w0", false, s.now)
	s.second(false)
	s.second(true)
	s.want("put back at 2, whose clock is ten minutes behind", false)
	s.routers[1].pool.Workers.Drain("w0", true, s.now)
	s.second(false)
	s.routers = append(s.routers, s.join())
	s.second(true)
	s.want("one joins", true)

	old := s.join()
	old.receiver.BeginReplay()
	for _, l := range s.past {
		_ = old.receiver.Apply(l.frame, l.sent, s.now)
	}
	old.receiver.EndReplay(s.now)
	if s.drains(old) {
		t.Error("a replay drains the worker")
	}
	for _, l := range s.past { // and late, as after an outage of Redis
		_ = s.join().receiver.Apply(l.frame, l.sent, s.now.Add(time.Minute))
	}
}

// TestDrainsOfNobody: broken records, and those of workers that are not here, change nothing and are not kept.
func TestDrainsOfNobody(t *testing.T) {
	s := &drainScene{fleet: newFleet(t, 2, 1, 1, 1<<16), off: []time.Duration{0}}
	d := s.routers[0].receiver.drains
	for key, value := range map[string]string{"w0": "true", "": "true 5", "w9": "true 99999999999999", "w0#7": "true 5"} {
		d.apply(&Session{Kind: drainRecord, Key: key, Value: []byte(value), Life: time.Second}, s.now)
	}
	d.apply(&Session{Kind: drainRecord, Key: "w0", Value: []byte("true 99999999999999"), Life: 0}, s.now)
	if s.want("after nonsense", false); len(d.known) > 0 {
		t.Errorf("%v is kept", d.known)
	}
}

// TestTheLaterDrainHolds: a record that comes late, or twice, does not undo a later one.
func TestTheLaterDrainHolds(t *testing.T) {
	s := &drainScene{fleet: newFleet(t, 3, 1, 1, 1<<16), off: []time.Duration{0}}
	d := s.routers[0].receiver.drains
	for _, c := range []struct {
		value string
		want  bool
	}{{"true 100", true}, {"false 50", true}, {"false 100", true}, {"false 101", false}, {"true 100", false}} {
		d.apply(&Session{Kind: drainRecord, Key: "w0", Value: []byte(c.value), Life: time.Second}, s.now)
		s.want(c.value, c.want)
	}
}
