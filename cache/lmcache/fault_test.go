package lmcache

import (
	"fmt"
	"testing"
	"time"
)

// scene is a fleet whose clock the test moves.
type scene struct {
	t   *testing.T
	f   *fleet
	now time.Time
}

func newScene(t *testing.T, l Limits) *scene {
	return &scene{t: t, f: newFleet(l, quiet), now: time.Unix(1_000_000, 0)}
}

// at returns a message of a worker at an address on a connection.
func (s *scene) at(k kind, instance, ip string, conn uint64) *message {
	return &message{kind: k, instance: instance, ip: ip, port: 1, from: ip, conn: conn, location: "LocalCPUBackend"}
}

func (s *scene) register(instance, ip string, conn uint64) {
	s.t.Helper()
	if err := s.f.register(s.at(register, instance, ip, conn), s.now); err != nil {
		s.t.Fatal(err)
	}
}

// admit sends operations with the sequence numbers from seq on.
func (s *scene) admit(instance, ip string, conn uint64, seq int64, keys ...uint64) {
	s.t.Helper()
	m := s.at(operations, instance, ip, conn)
	for n, k := range keys {
		m.ops = append(m.ops, operation{key: k, seq: seq + int64(n)})
	}
	if err := s.f.report(m, s.now); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) beat(instance, ip string) string {
	s.t.Helper()
	reason, err := s.f.beat(s.at(heartbeat, instance, ip, 0), s.now)
	if err != nil {
		s.t.Fatal(err)
	}
	return reason
}

// expect checks how many keys an instance has and its state.
func (s *scene) expect(what, instance string, keys int64, state string) {
	s.t.Helper()
	i := s.f.instances[instance]
	if i == nil {
		s.t.Fatalf("%s: there is no %s", what, instance)
	}
	if st := i.stats(); i.keys() != keys || st.State != state {
		s.t.Errorf("%s: %d keys, %s; want %d, %s", what, i.keys(), st.State, keys, state)
	}
}

func (s *scene) later(d time.Duration) {
	s.now = s.now.Add(d)
	tick(s.f, s.now)
}

func TestGap(t *testing.T) {
	s := newScene(t, Limits{})
	s.f.plug(1, "10.0.0.1")
	s.register("a", "10.0.0.1", 1)
	s.expect("registered", "a", 0, "registered, silent")
	s.admit("a", "10.0.0.1", 1, 0, 1, 2, 3)
	if got := s.beat("a", "10.0.0.1"); got != "" {
		t.Errorf("a worker that begins at 0 is asked for a sync: %s", got)
	}
	s.admit("a", "10.0.0.1", 1, 7, 8, 9)
	s.expect("after the gap only what is certain", "a", 2, "hash unknown")
	if got := s.beat("a", "10.0.0.1"); got != "sequence_gap" {
		t.Errorf("the heartbeat after a gap asks for %q", got)
	}
	if got := s.beat("a", "10.0.0.1"); got != "" {
		t.Errorf("it is asked again at once: %q", got)
	}
	s.admit("a", "10.0.0.1", 1, 0, 5)
	s.expect("it began anew without a word", "a", 1, "hash unknown")
}

// Two workers under one name: the numbers of both mingle, and the connections show it.
func TestTwoOfOneName(t *testing.T) {
	s := newScene(t, Limits{})
	s.f.plug(1, "10.0.0.1")
	s.f.plug(2, "10.0.0.2")
	s.register("a", "10.0.0.1", 1)
	s.admit("a", "10.0.0.1", 1, 0, 1, 2, 3)
	s.register("a", "10.0.0.2", 2)
	s.expect("the second took the name", "a", 0, "registered, silent")
	s.admit("a", "10.0.0.2", 2, 0, 11, 12)
	s.admit("a", "10.0.0.1", 1, 3, 4)
	s.expect("both report", "a", 1, "conflict")
	if s.f.instances["a"].live.Load() {
		t.Error("it is believed")
	}
	s.later(doubtFor + time.Second)
	s.admit("a", "10.0.0.2", 2, 2, 13)
	s.expect("and go on", "a", 1, "conflict")
	s.f.unplug(1)
	s.later(doubtFor + time.Second)
	s.admit("a", "10.0.0.2", 2, 3, 14)
	s.expect("one is left", "a", 2, "hash unknown")
}

func TestTwoHeartbeatsOfOneName(t *testing.T) {
	s := newScene(t, Limits{})
	s.f.plug(1, "10.0.0.1")
	s.register("a", "10.0.0.1", 1)
	s.beat("a", "10.0.0.1")
	s.beat("a", "10.0.0.9")
	s.expect("two addresses", "a", 0, "conflict")
}

func TestUnstable(t *testing.T) {
	s := newScene(t, Limits{})
	s.f.plug(1, "10.0.0.1")
	s.register("a", "10.0.0.1", 1)
	for n := range int64(6) {
		s.admit("a", "10.0.0.1", 1, n*10, uint64(n))
	}
	if s.f.instances["a"].why != unstable {
		t.Errorf("after five gaps it is %q", s.f.instances["a"].why)
	}
}

// An instance that floods loses its own view; the others keep theirs.
func TestFlood(t *testing.T) {
	s := newScene(t, Limits{Keys: 100, AllKeys: 150})
	s.f.plug(1, "10.0.0.1")
	s.admit("good", "10.0.0.1", 1, 0, 1, 2, 3)
	var keys []uint64
	for n := range uint64(1000) {
		keys = append(keys, 1000+n)
	}
	s.admit("bad", "10.0.0.1", 1, 0, keys...)
	s.expect("over its own limit", "bad", 0, "flooded")
	for n := range 40 {
		id := fmt.Sprint("many", n)
		s.admit(id, "10.0.0.1", 1, 0, keys[:90]...)
	}
	s.expect("the others' flood", "good", 3, "hash unknown")
	if n := s.f.dir.entries.Load(); n > 150 {
		t.Errorf("%d entries; at most 150", n)
	}
	s.later(doubtFor + time.Second)
	s.admit("bad", "10.0.0.1", 1, 1000, 7)
	s.expect("it begins anew", "bad", 1, "hash unknown")
}

func TestInstancesAreBounded(t *testing.T) {
	s := newScene(t, Limits{Instances: 3})
	for n := range 3 {
		s.register(fmt.Sprint(n), "10.0.0.1", 1)
	}
	if err := s.f.register(s.at(register, "one more", "10.0.0.1", 1), s.now); err == nil {
		t.Error("a fourth of three is taken")
	}
	for n := range 100 { // names that come and go leave nothing
		s.f.deregister(s.at(deregister, "2", "10.0.0.1", 1))
		s.register("2", "10.0.0.1", 1)
		s.admit("2", "10.0.0.1", 1, 0, uint64(n))
	}
	if n := len(*s.f.dir.seats.Load()); n > 1 || s.f.numbers.Load() > 3 {
		t.Errorf("%d seats and %d numbers are left behind", n, s.f.numbers.Load())
	}
	m := s.at(operations, "2", "10.0.0.1", 1)
	for n := range maxLocations + 1 {
		m.location = fmt.Sprint("L", n)
		err := s.f.report(m, s.now)
		if n >= maxLocations-1 && err == nil {
			t.Errorf("location %d is taken", n)
		}
	}
}

// A worker whose connection or heartbeats are gone is not believed; its memory is taken for gone with its connection.
func TestSilence(t *testing.T) {
	s := newScene(t, Limits{})
	s.f.plug(1, "10.0.0.1")
	s.register("a", "10.0.0.1", 1)
	s.admit("a", "10.0.0.1", 1, 0, 1, 2, 3)
	s.later(time.Hour)
	s.expect("idle without heartbeats", "a", 3, "hash unknown")
	for range 3 {
		s.beat("a", "10.0.0.1")
		s.later(5 * time.Second)
	}
	s.later(minOverdue)
	s.expect("heartbeats stopped", "a", 3, "silent")
	s.beat("a", "10.0.0.1")
	s.expect("they came back", "a", 3, "hash unknown")
	s.f.unplug(1)
	s.later(minOverdue + time.Second)
	s.expect("the connection is gone", "a", 0, "silent")
	if got := s.beat("a", "10.0.0.1"); got != "connection_lost" {
		t.Errorf("when it is back it is asked for %q", got)
	}
}

// Releases without sequence numbers lose their view with a connection, as nobody knows what was lost.
func TestUnnumberedConnectionLost(t *testing.T) {
	s := newScene(t, Limits{})
	s.f.plug(1, "10.0.0.1")
	s.register("old", "10.0.0.1", 1)
	m := s.at(admit, "old", "10.0.0.1", 1)
	m.ops = []operation{{key: 5, seq: noSeq}}
	if err := s.f.report(m, s.now); err != nil {
		t.Fatal(err)
	}
	s.expect("admitted", "old", 1, "hash unknown")
	s.f.unplug(1)
	s.expect("the connection broke", "old", 0, "hash unknown")
}

// A sync that nobody knows must not keep its worker frozen, and one with missing batches names them.
func TestSyncProgress(t *testing.T) {
	s := newScene(t, Limits{})
	ask := s.at(syncStatus, "a", "10.0.0.1", 1)
	ask.sync = "x"
	if p := s.f.syncProgress(ask, s.now); !p.complete {
		t.Error("a sync that nobody knows is not over")
	}
	begin := s.at(syncStart, "a", "10.0.0.1", 1)
	begin.sync, begin.batches = "x", 3
	if refusal := s.f.startSync(begin, s.now); refusal != "" {
		t.Fatal(refusal)
	}
	part := s.at(syncBatch, "a", "10.0.0.1", 1)
	part.sync, part.batch, part.keys = "x", 1, []uint64{1, 2}
	end := s.at(syncEnd, "a", "10.0.0.1", 1)
	end.sync = "x"
	for _, m := range []*message{part, end} {
		if err := s.f.report(m, s.now); err != nil {
			t.Fatal(err)
		}
	}
	if p := s.f.syncProgress(ask, s.now); p.complete || fmt.Sprint(p.missing) != "[0 2]" {
		t.Errorf("the progress is %+v", p)
	}
	begin.batches = maxBatches + 1
	if refusal := s.f.startSync(begin, s.now); refusal == "" {
		t.Error("any number of batches is taken")
	}
}
