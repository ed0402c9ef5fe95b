package worker

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/sdk/abi"
)

// adapt has the workers of these numbers list adapters of the model base.
func (p *Pool) adapt(i int, adapters ...string) {
	ids, entries := []string{"base"}, []json.RawMessage{json.RawMessage(`{"id":"base"}`)}
	for _, a := range adapters {
		ids = append(ids, a)
		entries = append(entries, fmt.Appendf(nil, `{"id":%q,"parent":"base"}`, a))
	}
	p.Listed(p.fleet.workers[i].number, ids, entries)
}

// found returns what an adapter's request finds: of each worker its bits and the milliseconds of the load.
func found(p *Pool, model string, at float64) string {
	rows, _, _ := p.Snapshot(Query{Model: model, At: p.after(at)}, nil, nil)
	var all []string
	for _, r := range rows {
		text := fmt.Sprint(math.Round(1000 * r.AdapterLoad()))
		for bit, name := range map[uint32]string{abi.RowAdapter: "runs", abi.RowAdapterWaiting: "waits", abi.RowAdaptersFull: "full"} {
			if r.State&bit != 0 {
				text = name + " " + text
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// TestAdaptersInRows: what the pages and the router's own requests say of an adapter.
func TestAdaptersInRows(t *testing.T) {
	p := upPool(t, 3)
	for i := range 3 {
		p.adapt(i, "a", "b", "c", "d")
	}
	f := func(what, model string, at float64, want string) {
		t.Helper()
		if got := found(p, model, at); got != want {
			t.Errorf("%s: %s; want %s", what, got, want)
		}
	}
	f("nothing is known", "a", 1, "400, 400, 400")
	f("the model itself", "base", 1, "0, 0, 0")
	page := func(i int, at float64, running, waiting string) {
		p.scrape(i, Metrics{Adapters: &Adapters{Max: 2, Running: strings.Fields(running), Waiting: strings.Fields(waiting)}}, at)
	}
	page(0, 1, "a", "")
	page(1, 1, "b c", "a")
	page(2, 1, "b c", "")
	f("by the pages", "a", 2, "runs 0, waits 400, full 2400")
	f("the pages are old", "a", 30, "400, 400, 400")

	p.fleet.workers[0].uses = nil
	page(0, 30, "", "")
	one := p.send(0, Dispatch{Model: "b"}, 31)
	f("a request runs", "b", 31, "runs 0, 400, 400")
	one.End(p.after(32), judge.Outcome{Kind: judge.Answered})
	f("it stays when the request has ended", "b", 33, "runs 0, 400, 400")
	two := p.send(0, Dispatch{Model: "c"}, 33)
	f("there is room for two", "b", 33, "runs 0, 400, 400")
	f("the third takes the place of one that was used a second ago", "d", 33, "793, 400, 400")
	f("and a minute later", "d", 92, "547, 400, 400")
	p.send(0, Dispatch{Model: "d"}, 92)
	f("it has its place", "d", 92, "runs 0, 400, 400")
	f("which was b's", "b", 92, "full 2400, 400, 400")
	two.End(p.after(93), judge.Outcome{Kind: judge.Answered})
	p.adapt(0, "a", "b", "d")
	f("c was unloaded, and is listed elsewhere", "c", 93, "400, 400")
}

// TestOrdinaryRequestsCountNoAdapters: a pool without adapters keeps none.
func TestOrdinaryRequestsCountNoAdapters(t *testing.T) {
	p := upPool(t, 1)
	p.say(0, "base")
	p.send(0, Dispatch{Model: "base"}, 1)
	if w := p.fleet.workers[0]; len(w.uses) > 0 || p.fleet.adapters {
		t.Errorf("adapters %v", w.uses)
	}
}
