package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// say reports that worker i lists the models, as its /v1/models would.
func (p *Pool) say(i int, models ...string) {
	var entries []json.RawMessage
	for _, m := range models {
		entries = append(entries, fmt.Appendf(nil, `{"id":%q,"by":%d}`, m, i))
	}
	p.Listed(p.fleet.workers[i].number, models, entries)
}

func snap(p *Pool, model string, at float64) string {
	rows, ws, standing := p.Snapshot(Query{Model: model, At: p.after(at)}, nil, nil)
	ids := make([]string, 0, len(ws))
	for i, w := range ws {
		if rows[i].Worker != w.slot || rows[i].Key != w.key {
			return "rows and workers disagree"
		}
		ids = append(ids, w.id)
	}
	switch standing {
	case Down, Starting:
		return "none up"
	case Lacking:
		return "unknown model"
	case Full:
		return "full"
	case Panicked:
		return "panicked " + strings.Join(ids, " ")
	}
	return strings.Join(ids, " ")
}

func TestSnapshotByModel(t *testing.T) {
	p := upPool(t, 3)
	f := func(model, want string) {
		t.Helper()
		if got := snap(p, model, 1); got != want {
			t.Errorf("Snapshot(%q) = %s; want %s", model, got, want)
		}
	}
	f("any", "w0 w1 w2") // no worker has had a health check
	p.say(0, "base", "lora")
	p.say(1, "base")
	f("lora", "w0 w2")
	f("other", "w2")
	p.say(2, "base")
	f("lora", "w0")
	f("base", "w0 w1 w2")
	f("", "w0 w1 w2")
	f("other", "unknown model")
	if p.fleet.workers[1].listing != p.fleet.workers[2].listing {
		t.Error("equal listings are not one")
	}
	p.kill(0, 1)
	f("lora", "none up") // its worker is down: the model is known
	f("base", "w1 w2")
	p.say(2)
	f("base", "w1")
}

func TestSnapshotNoWorkers(t *testing.T) {
	p := New(Config{}, start)
	if got := snap(p, "m", 1); got != "none up" {
		t.Errorf("empty pool: %s; want none up", got)
	}
	p.Update(specs(2), start)
	if got := snap(p, "m", 1); got != "none up" {
		t.Errorf("before the first health check: %s; want none up", got)
	}
}

func TestRow(t *testing.T) {
	p := upPool(t, 1)
	w := p.fleet.workers[0]
	row := func(at float64) abi.Row {
		rows := p.rows(at)
		return rows[0]
	}
	if r := row(1); r.MetricsAge != -1 || r.State != abi.RowStale || r.Weight != 1 || r.Slow != 1 {
		t.Errorf("fresh: %+v; want age -1, stale, weight 1, slow 1", r)
	}
	p.scrape(int(w.slot), Metrics{Running: 3, Waiting: 2, Usage: .5}, 2)
	a := p.force(w, Dispatch{PromptTokens: 100}, 3)
	b := p.force(w, Dispatch{PromptTokens: 50}, 3)
	b.FirstByte(p.after(4))
	r := row(4)
	if r.Running != 3 || r.Waiting != 2 || r.KVUsage != .5 || r.MetricsAge != 2 || r.State != 0 {
		t.Errorf("scraped: %+v; want 3 running, 2 waiting, .5, age 2, not stale", r)
	}
	if r.InFlight != 2 || r.PendingTokens != 100 || r.Sent != 2 || r.TTFT != 1 {
		t.Errorf("loaded: %+v; want 2 in flight, 100 pending, 2 sent, TTFT 1", r)
	}
	a.End(p.after(5), judge.Outcome{})
	b.End(p.after(5), judge.Outcome{})
	if r := row(18); r.State != abi.RowStale || r.InFlight != 0 || r.PendingTokens != 0 {
		t.Errorf("16 s later: %+v; want stale, nothing in flight", r)
	}
}

// TestRowOfTheConfiguration: labels are bits of the pool's names, whose epoch changes with them.
func TestRowOfTheConfiguration(t *testing.T) {
	s := specs(3)
	s[0].Labels = map[string]string{"tier": "batch", "pool": "a"}
	s[1].Labels = map[string]string{"tier": "live"}
	s[1].Cost, s[1].KVTokens = 2.5, 5000
	p := upPoolOf(Config{Workers: s})
	names, epoch := p.Labels()
	if got := strings.Join(names, " "); got != "pool=a tier=batch tier=live" {
		t.Errorf("labels: %s", got)
	}
	p.send(1, Dispatch{PromptTokens: 70}, 1).FirstByte(p.after(2))
	f := func(i int, labels uint64, price float32, kv, flight uint32) {
		t.Helper()
		r := p.rows(3)[i]
		if r.Labels != labels || r.Price != price || r.KVTokens != kv || r.FlightTokens != flight {
			t.Errorf("row %d: labels %b, price %v, KV %d, in flight %d; want %b, %v, %d, %d",
				i, r.Labels, r.Price, r.KVTokens, r.FlightTokens, labels, price, kv, flight)
		}
	}
	f(0, 0b011, 1, 0, 0)
	f(1, 0b100, 2.5, 5000, 70)
	f(2, 0, 1, 0, 0)
	p.Update(s, p.after(4))
	if _, now := p.Labels(); now != epoch {
		t.Errorf("the same labels have epoch %d after %d", now, epoch)
	}
	s[0].Labels = nil
	p.Update(s, p.after(5))
	if names, now := p.Labels(); len(names) != 1 || now == epoch {
		t.Errorf("other labels: %q, epoch %d after %d", names, now, epoch)
	}
	f(0, 0, 1, 0, 0)
	f(1, 0b001, 2.5, 5000, 70)
}

func TestModelsMerged(t *testing.T) {
	p := upPool(t, 3)
	p.say(0, "base", "lora")
	p.say(1, "base", "more")
	p.say(2, "gone")
	p.kill(2, 1)
	got := fmt.Sprintf("%s", p.Models(nil))
	if want := `[{"id":"base","by":0} {"id":"lora","by":0} {"id":"more","by":1}]`; got != want {
		t.Errorf("Models = %s; want %s", got, want)
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := map[uint64]bool{}
	high := map[uint64]int{}
	for i := range 4096 {
		k := KeyOf(fmt.Sprintf("10.0.0.%d:8000", i))
		if seen[k] {
			t.Fatalf("two ids have the key %x", k)
		}
		seen[k] = true
		high[k>>60]++
	}
	for nibble, n := range high {
		if n < 190 || n > 330 {
			t.Errorf("%d of 4096 keys begin with %x; want about 256", n, nibble)
		}
	}
	if KeyOf("w0") != 0x1d64e4b5453ee0b8 {
		t.Errorf(`KeyOf("w0") = %#x changed: routers of two versions would disagree`, KeyOf("w0"))
	}
}

func TestSnapshotDoesNotAllocate(t *testing.T) {
	p := upPool(t, 16)
	p.say(3, "base")
	rows, ws := make([]abi.Row, 0, 16), make([]*Worker, 0, 16)
	now := p.after(1)
	if n := testing.AllocsPerRun(100, func() { p.Snapshot(Query{Model: "base", At: now}, rows, ws) }); n != 0 {
		t.Errorf("Snapshot allocates %v times; want 0", n)
	}
}

// TestDrainingWorkerKeepsItsSessions: a draining worker still gets the requests of its sessions, within the limit, and
// no other.
func TestDrainingWorkerKeepsItsSessions(t *testing.T) {
	p := New(Config{Workers: specs(2), MaxInFlight: 2}, start)
	for _, w := range p.fleet.workers {
		p.heal(int(w.slot), 0)
	}
	p.Drain("w0", true, start)
	f := func(what string, d Dispatch, want bool) {
		t.Helper()
		if _, ok := p.TryBegin(p.fleet.workers[0], d, p.after(1)); ok != want {
			t.Errorf("%s: %v; want %v", what, ok, want)
		}
	}
	f("another request", Dispatch{}, false)
	f("one of its session", Dispatch{Bound: true}, true)
	f("a second one", Dispatch{Bound: true}, true)
	f("a third, over max_in_flight", Dispatch{Bound: true}, false)
	p.kill(0, 2)
	f("one of its session when it is down", Dispatch{Bound: true}, false)
}

// TestWhoIsTaken tests the decision as a table: four workers, each in a state of its own, and one request.
func TestWhoIsTaken(t *testing.T) {
	const at = 20.0
	fates := map[rune]func(p *Pool, i int){
		'.': func(*Pool, int) {},
		'd': func(p *Pool, i int) { p.kill(i, at) },
		'e': func(p *Pool, i int) {
			p.fleet.workers[i].health.SetAside(&judge.Verdict{Cause: judge.Failing, Why: "500"}, 0, 9*time.Second, sec(at))
		},
		'l': func(p *Pool, i int) { p.fail(i, 3, at, judge.Leaving) },
		'a': func(p *Pool, i int) { p.Drain(p.fleet.workers[i].id, true, p.after(at)) },
		'q': func(p *Pool, i int) { p.hush(i, at-12); p.hush(i, at-10) },
		'z': func(p *Pool, i int) { p.scrape(i, Metrics{Asleep: true}, at) },
		'c': func(p *Pool, i int) { p.fail(i, 1, at, judge.Busy) },
		'm': func(p *Pool, i int) { p.say(i, "other") },
		'f': func(p *Pool, i int) { p.send(i, Dispatch{}, at); p.send(i, Dispatch{}, at) },
		's': func(p *Pool, i int) { p.kill(i, at); p.heal(i, at); p.send(i, Dispatch{}, at) },
	}
	f := func(states string, panics bool, q Query, want string) {
		t.Helper()
		p := upPoolOf(Config{Workers: specs(len(states)), MaxInFlight: 2, Panic: panics})
		for i, state := range states {
			fates[state](p, i)
		}
		q.Model, q.At = "tiny", p.after(at)
		_, ws, got := p.Snapshot(q, nil, nil)
		words := got.String() + ":"
		for _, w := range ws {
			words += " " + w.id
		}
		if words != want {
			t.Errorf("%s, panic %v, %+v: %s; want %s", states, panics, q, words, want)
		}
	}
	f("....", false, Query{}, "up: w0 w1 w2 w3")
	f("ddda", false, Query{}, "down:")
	f("ddda", true, Query{}, "panic: w0 w1 w2") // an operator's drain holds
	f("d.ea", false, Query{}, "up: w1")
	f("ddea", false, Query{}, "up: w2") // suspicion is no reason to refuse what nobody else takes
	f("ddea", true, Query{}, "up: w2")
	f("dqea", false, Query{}, "up: w1 w2")
	f("dqla", false, Query{}, "up: w1 w2")
	f("zzza", false, Query{}, "down:") // those asleep would not answer
	f("zz.q", false, Query{}, "up: w2")
	f("c..c", false, Query{}, "up: w1 w2")
	f("c..c", false, Query{Bound: "w3"}, "up: w1 w2 w3")
	f("cccc", false, Query{}, "up: w0 w1 w2 w3")
	f("cqcd", false, Query{}, "up: w0 w2")
	f("cffd", false, Query{}, "up: w0")
	f("mmmm", true, Query{}, "lacks the model:")
	f("mmmd", false, Query{}, "down:")
	f("mm.d", false, Query{}, "up: w2")
	f("ffff", true, Query{}, "full:")
	f("ffdm", false, Query{}, "full:")
	f(".fdm", false, Query{}, "up: w0")
	f("...s", false, Query{}, "up: w0 w1 w2")
	f("...s", false, Query{Again: true}, "up: w0 w1 w2 w3")
	f("...s", false, Query{Bound: "w3"}, "up: w0 w1 w2 w3")
	f("fffs", false, Query{}, "up: w3") // no other worker is there
	f("ddds", false, Query{}, "up: w3")
	f("..a.", false, Query{Bound: "w2"}, "up: w0 w1 w2 w3")
	f("..l.", false, Query{Bound: "w2"}, "up: w0 w1 w3")
	f("..e.", false, Query{Bound: "w2"}, "up: w0 w1 w3")
	f("..f.", false, Query{Bound: "w2"}, "up: w0 w1 w3")
	f("..m.", false, Query{Bound: "w2"}, "up: w0 w1 w3")
	f("ddad", false, Query{Bound: "w2"}, "up: w2")
}

// TestRowOfARole: a row shows the role that the worker has, and another one after an update.
func TestRowOfARole(t *testing.T) {
	s := specs(3)
	s[0].Role, s[1].Role = Prefills, Decodes
	p := upPoolOf(Config{Workers: s})
	f := func(i int, prefills, decodes bool) {
		t.Helper()
		if r := p.rows(3)[i]; r.Prefills() != prefills || r.Decodes() != decodes {
			t.Errorf("row %d: prefills %v, decodes %v; want %v, %v", i, r.Prefills(), r.Decodes(), prefills, decodes)
		}
	}
	f(0, true, false)
	f(1, false, true)
	f(2, true, true)
	s[0].Role = Both
	p.Update(s, p.after(4))
	f(0, true, true)
}
