package exchange

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// A canary that names pairs is served so beside a strategy that names none, and the other way round.
func TestNamedPairOfACanary(t *testing.T) {
	names, plain := pairsOf("d1", "p1"), host.Native("plain", 0, func(*abi.Header, []abi.Row, []uint32) uint64 {
		return abi.Pack(0, 9, 0)
	})
	for _, c := range []struct{ own, canary *host.Strategy }{{plain, names}, {names, plain}} {
		d := newDuo(t, pairConnector)
		d.roles(t)
		current := new(host.Current)
		current.Replace(c.canary)
		d.pool.Strategy.Replace(c.own)
		d.pool.SetCanaries([]route.Canary{{Strategy: current, Header: "x-canary", Value: "1"}})
		for _, by := range []*host.Strategy{c.own, c.canary} {
			var header []string
			if by == c.canary {
				header = []string{"X-Canary", "1"}
			}
			in := inbound("POST", "/v1/chat/completions", chatOf(shortPrompt), header...)
			in.Epoch, in.ID = d.epoch, "id-1"
			life := new(message.Life)
			alone.Begin(life)
			out := d.Serve(life, in)
			life.Leave()
			got := d.took()
			if out.Status != 200 || in.Seen.Strategy != by.Name() {
				t.Errorf("%d by %s; want %s", out.Status, in.Seen.Strategy, by.Name())
			}
			split := in.Seen.Split != nil && in.Seen.Split.Named && in.Seen.Split.Prefiller == "p1"
			if is := by == names; split != is || strings.HasPrefix(got, "p1") != is || (in.Seen.PairName() == "p1") != is {
				t.Errorf("by %s: %s, pair %q, %+v", by.Name(), got, in.Seen.PairName(), in.Seen.Split)
			}
		}
	}
}

// A strategy that fails and is set aside names nobody: the host decides whether the prompt goes to a prefiller, and to
// which one.
func TestNamedPairInQuarantine(t *testing.T) {
	wasm, err := wasmtest.Assemble(fmt.Sprintf(`(module
		(memory (export "memory") 1)
		(func (export "warmpath_abi_1_2"))
		(func (export "wp_frame") (param i32) (result i32) i32.const 1024)
		(func (export "wp_wants") (result i32) i32.const %d)
		(func (export "wp_pick") (result i64)
			i32.const 1036 i32.load i32.const 4 i32.lt_u if i64.const 0 return end
			i32.const 1252 i32.const 3 i32.store
			unreachable))`, abi.WantPair))
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(t.Context(), host.Config{Slots: 1, QuarantineAfter: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	traps, err := h.Load(t.Context(), "traps", wasm, host.Options{PickTime: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	d := newDuo(t, pairConnector)
	d.roles(t)
	d.pool.Strategy.Replace(traps)
	f := func(bytes int, fallback, want string) {
		t.Helper()
		who, in, _ := d.sends(t, bytes)
		if s := in.Seen.Split; in.Seen.Fallback != fallback || in.Seen.PairName() != "" || (s != nil) != strings.HasPrefix(who, "p") ||
			s != nil && (s.Named || s.Result != string(journal.PrefillDone)) {
			t.Errorf("%d bytes: fallback %q, pair %q, %s, %+v", bytes, in.Seen.Fallback, in.Seen.PairName(), who, s)
		}
		if got := strings.NewReplacer("0", "", "1", "").Replace(who); got != want {
			t.Errorf("%d bytes, fallback %q: %s; want %s", bytes, in.Seen.Fallback, who, want)
		}
	}
	f(shortPrompt, "trap", "d")
	f(longPrompt, "quarantined", "p d")
	f(longPrompt+2000, "quarantined", "p d")
	f(shortPrompt, "quarantined", "d")
	if d.stranded() != 0 {
		t.Errorf("%d pinned", d.stranded())
	}
}

// A worker whose engine sleeps has no row, and so is named by nobody. One that was put to sleep since it was named gets
// nothing: another one does its part.
func TestNamedPairAsleep(t *testing.T) {
	f := func(what, decoder, prefiller, sleeps string, since bool, want, pair string, named bool) {
		t.Helper()
		d := newDuo(t, pairConnector)
		d.roles(t)
		names := pairsOf(decoder, prefiller)
		if !since {
			d.pool.Workers.Slept(sleeps, time.Now())
		}
		d.pool.Strategy.Replace(host.Native("names", abi.WantPair, func(h *abi.Header, rows []abi.Row, order []uint32) uint64 {
			r := names.Pick(&host.Frame{Header: *h, Rows: slices.Clone(rows)})
			if h.Flags&abi.HeaderPrefill == 0 {
				if h.PairRow = int32(r.Pair) - 1; since {
					d.pool.Workers.Slept(sleeps, time.Now())
				}
			}
			return abi.Pack(int32(r.Row), r.Reason, 0)
		}))
		who, in, _ := d.sends(t, longPrompt)
		s := in.Seen.Split
		if who != want || in.Seen.PairName() != pair || s == nil || s.Named != named || s.Prefiller != want[:2] || d.stranded() != 0 {
			t.Errorf("%s: %s, pair %q, %+v, %d pinned; want %s, %q", what, who, in.Seen.PairName(), s, d.stranded(), want, pair)
		}
	}
	f("the prefiller sleeps", "d0", "p1", "p1", false, "p0 d0", "", false)
	f("it was put to sleep", "d0", "p1", "p1", true, "p0 d0", "p1", false)
	f("another prefiller sleeps", "d0", "p1", "p0", false, "p1 d0", "p1", true)
	f("the decoder sleeps", "d0", "p1", "d0", false, "p1 d1", "p1", true)
	f("it was put to sleep", "d0", "p1", "d0", true, "p0 d1", "p1", false)
}

// A strategy is asked for one half of a request only if there may be another one.
func TestLegs(t *testing.T) {
	d := newDuo(t, pairConnector)
	d.roles(t)
	var asked []uint32
	d.pool.Strategy.Replace(host.Native("looks", 0, func(h *abi.Header, _ []abi.Row, _ []uint32) uint64 {
		asked = append(asked, h.Flags&(abi.HeaderAnswer|abi.HeaderPrefill))
		return abi.Pack(0, 7, 0)
	}))
	f := func(path, body string, want ...uint32) {
		t.Helper()
		asked = nil
		in := inbound("POST", path, body)
		in.Epoch, in.ID = d.epoch, "id-1"
		life := new(message.Life)
		alone.Begin(life)
		d.Serve(life, in)
		life.Leave()
		if !slices.Equal(asked, want) {
			t.Errorf("%s, %.60s: asked for %v; want %v", path, body, asked, want)
		}
	}
	long := strings.Repeat("word ", 800)
	f("/v1/completions", `{"prompt":"`+long+`"}`, abi.HeaderAnswer, abi.HeaderPrefill)
	f("/v1/completions", `{"prompt":"word"}`, abi.HeaderAnswer)
	f("/v1/completions", `{"n":2,"prompt":"`+long+`"}`, 0)
	f("/v1/completions", `{"prompt_logprobs":0,"prompt":"`+long+`"}`, 0)
	f("/v1/embeddings", `{"input":"`+long+`"}`, 0)
	f("/v1/chat/completions", `{"messages":[]}`, 0)
}
