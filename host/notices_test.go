package host

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Every notice comes once, whole and in the layout of the contract, over several instances.
func TestNoticesAreDelivered(t *testing.T) {
	kv := &store{m: map[string]string{}, n: map[string]int64{}}
	s := load(t, newHost(t, Config{KV: kv, Slots: 3}), wat(t, "notices"), Options{Allow: []string{"kv"}})
	n := s.Notices()
	if want := uint32(abi.WantTick | abi.WantFirstToken | abi.WantComplete | abi.WantKVEvents); n.Wants() != want {
		t.Errorf("wants %#x; want all calls, %#x, and no cost", n.Wants(), want)
	}
	sum := func(key string) int64 {
		v, _ := kv.Add(t.Name(), key, 0, 0)
		return v
	}
	n.Tick(time.Unix(0, 7))
	waittest.Until(t, "the tick", func() bool { return sum("tick") == 7 })
	for i := range 500 { // more than stand in a frame of 64 rows
		n.FirstToken(&abi.Outcome{Seq: uint64(i)})
		n.Complete(&abi.Outcome{Seq: uint64(i), OutputTokens: int32(i), CachedTokens: -1})
		n.KVEvents([]abi.KVEvent{{Tokens: 16}, {Tokens: 1}})
	}
	waittest.Until(t, "all outcomes and events", func() bool {
		return sum("first") == 500 && sum("complete") == 500*499/2 && sum("event") == 17*500
	})
	st := s.Stats()
	want := "map[wp_on_complete:500 wp_on_first_token:500 wp_on_kv_event:1000 wp_tick:1]"
	if got := fmt.Sprint(st.Delivered); got != want || st.Dropped["wp_on_complete"] != 0 || st.Discarded != 0 {
		t.Errorf("delivered %s, dropped %v, %d instances discarded; want %s", got, st.Dropped, st.Discarded, want)
	}
	if r := s.Pick(frame(3, 1)); r.Fallback != "" || r.Row != 0 {
		t.Errorf("a pick after that: %+v", r)
	}
}

// A module that wants no call gets none, and one of 1.0 whatever it exports.
func TestNoticesAreForThoseThatWantThem(t *testing.T) {
	h := newHost(t, Config{})
	for name, wants := range map[string]uint32{"wants_cost": abi.WantCost, "tiny": 0, "abi_1_0": 0} {
		s := load(t, h, wat(t, name), Options{})
		n := s.Notices()
		n.Tick(time.Now())
		n.FirstToken(&abi.Outcome{})
		n.Complete(&abi.Outcome{})
		n.KVEvents([]abi.KVEvent{{}})
		if n.Wants() != wants || n.due() {
			t.Errorf("%s wants %#x, and something is due: %v; want %#x", name, n.Wants(), n.due(), wants)
		}
	}
}

func TestCostIsForThoseThatWantIt(t *testing.T) {
	s := load(t, newHost(t, Config{}), wat(t, "wants_cost"), Options{})
	f := frame(9, 0)
	for i := range f.Rows {
		f.Rows[i].Cost = 3
	}
	f.Rows[6].Cost, f.Rows[7].Cost = .25, 1e-9
	if r := s.Pick(f); r.Fallback != "" || r.Row != 7 {
		t.Errorf("%+v; want the cheapest row, 7", r)
	}
}

// A call that fails costs its instance, and sets no strategy aside. After several in a row the module gets no notices
// for a while, and goes on answering.
func TestNoticeThatFails(t *testing.T) {
	var log bytes.Buffer
	h := newHost(t, Config{Slots: 2, QuarantineAfter: 3, QuarantineFor: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
	s := load(t, h, wat(t, "notice_traps"), Options{Fuel: 100_000})
	n, f := s.Notices(), frame(4, 1)
	fail := func(want string, send func(o *abi.Outcome)) {
		t.Helper()
		before := s.Stats().Discarded
		send(&abi.Outcome{})
		waittest.Until(t, "an instance is discarded", func() bool { return s.Stats().Discarded > before })
		waittest.Until(t, want, func() bool { return strings.Contains(s.Stats().LastError, want) }) // which is noted behind that
		waittest.Until(t, "it is replaced", func() bool { return s.Stats().Instances == 2 })
	}
	fail("wp_on_complete: wasm error: unreachable", n.Complete)
	fail("wp_on_first_token used up its fuel of 100000", n.FirstToken)
	fail("wp_on_complete", n.Complete)
	n.Complete(&abi.Outcome{})
	n.Tick(time.Now())
	waittest.Until(t, "what comes now is dropped", func() bool {
		d := s.Stats().Dropped
		return d["wp_on_complete"] == 1 && d["wp_tick"] == 1
	})
	if st := s.Stats(); st.Quarantined || st.Discarded != 3 || s.Pick(f).Fallback != "" {
		t.Errorf("%+v; want a strategy in service, three instances replaced", st)
	}
	if got := strings.Count(log.String(), "gets no notices for a while"); got != 1 {
		t.Errorf("%d lines say so; want 1:\n%s", got, &log)
	}
}

// What finds the queue full is dropped and counted; nobody waits.
func TestNoticesAreBounded(t *testing.T) {
	n := &Notices{wants: abi.WantAll, wake: func() {}}
	for range maxOutcomes + 5 {
		n.Complete(&abi.Outcome{})
	}
	n.KVEvents(make([]abi.KVEvent, maxEvents-1))
	n.KVEvents(make([]abi.KVEvent, 4))
	n.Tick(time.Unix(1, 0))
	n.Tick(time.Unix(2, 0))
	_, dropped := n.stats()
	want := "map[wp_on_complete:5 wp_on_first_token:0 wp_on_kv_event:3 wp_tick:1]"
	if got := fmt.Sprint(dropped); got != want {
		t.Errorf("dropped %s; want %s", got, want)
	}
	got, _ := n.next(1000)
	if got.export != "wp_tick" || got.argument != 2e9 {
		t.Errorf("first %+v; want the later tick", got)
	}
	for _, want := range []int{10, 10, maxOutcomes - 20} {
		room := want * abi.OutcomeSize
		if got, _ := n.next(room + 1); int(got.argument) != want || len(got.records) != room {
			t.Errorf("%s of %d records in %d bytes; want %d", got.export, got.argument, len(got.records), want)
		}
	}
	n.clear()
	if n.due() {
		t.Error("something is due after clear")
	}
	if _, dropped := n.stats(); dropped["wp_on_kv_event"] != 3+maxEvents {
		t.Errorf("dropped %v", dropped)
	}
}

// Picks, notices and a swap at once.
func TestNoticesHammer(t *testing.T) {
	kv := &store{m: map[string]string{}, n: map[string]int64{}}
	h := newHost(t, Config{KV: kv})
	s, err := h.Load(ctx, "hammer", wat(t, "notices"), Options{Allow: []string{"kv"}})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	for range 4 {
		go func() {
			f := frame(4, 1)
			for i := range 2000 {
				s.Notices().Complete(&abi.Outcome{OutputTokens: 1})
				s.Notices().KVEvents([]abi.KVEvent{{Tokens: 1}})
				s.Notices().Tick(time.Unix(0, 1))
				if r := s.Pick(f); r.Fallback != "" && r.Fallback != "busy" && r.Fallback != "closed" {
					t.Errorf("pick %d: %+v", i, r)
				}
				s.Stats()
			}
			done <- true
		}()
	}
	for range 3 {
		<-done
	}
	s.Close(ctx)
	<-done
	st := s.Stats()
	if sum, _ := kv.Add("hammer", "complete", 0, 0); uint64(sum) != st.Delivered["wp_on_complete"] {
		t.Errorf("the module counted %d outcomes of %d delivered", sum, st.Delivered["wp_on_complete"])
	}
}
