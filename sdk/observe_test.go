package sdk

import (
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

// all implements everything that a strategy may.
type all struct {
	probe
	heard []string
}

func (a *all) Wants() Want {
	return WantCost | WantHeld | WantPair | WantCandidates | WantSessions | 1<<20
}
func (a *all) Reasons() []string { return []string{"mine", "mine too"} }
func (a *all) Classify(r *Request) (class int, weight float64) {
	return int(r.Priority) - 3, 1.5
}
func (a *all) Filter(r *Request, workers []Worker) Decision {
	return r.Keep(workers, func(w *Worker) bool { return w.Worker%2 == 1 }).Because(9)
}
func (a *all) OnTick(now int64) { a.heard = append(a.heard, fmt.Sprint("tick ", now)) }
func (a *all) OnFirstToken(o *Outcome) {
	a.heard = append(a.heard, fmt.Sprint("first ", o.Seq))
}
func (a *all) OnComplete(o *Outcome) {
	a.heard = append(a.heard, fmt.Sprint("complete ", o.OutputTokens))
}
func (a *all) OnKVEvents(events []KVEvent) {
	a.heard = append(a.heard, fmt.Sprint("events ", len(events), " ", events[len(events)-1].Hash))
}

func (a *all) Plan(talks []Talk) {
	for i := range talks {
		talks[i].Value = -talks[i].Value
	}
}

func TestWantsOf(t *testing.T) {
	f := func(s Strategy, want uint32) {
		t.Helper()
		if got := WantsOf(s); got != want {
			t.Errorf("WantsOf(%T) = %#x; want %#x", s, got, want)
		}
	}
	f(nil, 0)
	f(&probe{}, 0)
	f(&all{}, abi.WantAll) // and no bit that the contract does not have
}

// What stands in the frame's area reaches the strategy as it is, and no more than fits.
func TestRecords(t *testing.T) {
	var f frame
	at := f.grow(2)
	room := len(f.area) * 8
	outcomes := unsafe.Slice((*Outcome)(at), 3)
	for i := range outcomes {
		outcomes[i] = Outcome{Seq: uint64(10 + i), OutputTokens: int32(i)}
	}
	a := &all{}
	tick(a, 7)
	firstTokens(a, records[Outcome](&f, 2))
	completed(a, records[Outcome](&f, 3))
	kvEvents(a, records[KVEvent](&f, 0))
	*(*KVEvent)(f.at(abi.KVEventSize)) = KVEvent{Hash: 99}
	kvEvents(a, records[KVEvent](&f, 2))
	talks := unsafe.Slice((*Talk)(at), 2)
	talks[0], talks[1] = Talk{Value: .5}, Talk{Value: 2}
	plan(a, records[Talk](&f, 2))
	if talks[0].Value != -.5 || talks[1].Value != -2 {
		t.Errorf("the values are %v and %v; want those that the strategy wrote", talks[0].Value, talks[1].Value)
	}
	want := "tick 7, first 10, first 11, complete 0, complete 1, complete 2, events 2 99"
	if got := strings.Join(a.heard, ", "); got != want {
		t.Errorf("heard %s; want %s", got, want)
	}
	for _, n := range []uint32{uint32(room/abi.OutcomeSize) + 1, 1<<32 - 1} {
		if got := records[Outcome](&f, n); got != nil {
			t.Errorf("%d records of %d bytes each in %d bytes", len(got), abi.OutcomeSize, room)
		}
	}
	if got := records[Outcome](new(frame), 1); got != nil {
		t.Error("a record before there is a frame")
	}
	tick(&probe{}, 1) // who does not want it gets none
	firstTokens(&probe{}, outcomes)
	completed(&probe{}, outcomes)
	plan(&probe{}, talks)
}

func TestReasonNames(t *testing.T) {
	var f frame
	at := f.grow(1)
	b := unsafe.Slice((*byte)(at), f.reasons(&all{}))
	names := map[string]string{}
	for len(b) > 0 {
		code, name, rest, ok := abi.NextOption(b)
		if !ok {
			t.Fatalf("% x is no pair", b)
		}
		names[code], b = name, rest
	}
	if len(names) != len(reasons)+2 || names["9"] != "its turn" || names["256"] != "mine" || names["257"] != "mine too" {
		t.Errorf("%v", names)
	}
}
