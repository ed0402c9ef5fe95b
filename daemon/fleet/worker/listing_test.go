package worker

import (
	"encoding/json"
	"testing"
)

// TestEqualListingsKeepTheirEntries: workers share the compared listing, and have their own entries.
func TestEqualListingsKeepTheirEntries(t *testing.T) {
	p := upPool(t, 2)
	p.say(0, "base")
	p.say(1, "base")
	a, b := p.fleet.workers[0], p.fleet.workers[1]
	if a.listing != b.listing {
		t.Error("equal listings are two")
	}
	if string(a.entries[0]) == string(b.entries[0]) {
		t.Errorf("both have the entry %s; want each its own", a.entries[0])
	}
	p.kill(0, 1)
	if got := p.Models(nil); len(got) != 1 || string(got[0]) != string(b.entries[0]) {
		t.Errorf("with the first one down: %s; want the second's entry", got)
	}
}

// TestReportsOfNobody: a report for a number without a worker, or of a removed worker, changes nothing.
func TestReportsOfNobody(t *testing.T) {
	p := upPool(t, 2)
	gone := p.fleet.workers[1].number
	p.Update(specs(1), p.after(1))
	before := p.Stats(p.after(2))
	for _, id := range []uint64{0, gone, 99} {
		p.Healthy(id, p.after(2))
		p.Silent(id, "late", p.after(2))
		p.Dead(id, "late", p.after(2))
		p.Unchecked(id, "late", p.after(2))
		p.Listing(id)
		p.Listed(id, []string{"late"}, []json.RawMessage{[]byte(`{}`)})
		p.Unlisted(id, "late", p.after(2))
		p.Scraped(id, Page{Metrics: Metrics{Running: 7, Process: 3}}, p.after(2))
		p.Counted(id, 4, p.after(2))
		p.Unscraped(id, "late", p.after(2))
		if got := p.Phase(id, p.after(0)); got != (Phase{}) {
			t.Errorf("number %d: %+v; want none of it", id, got)
		}
	}
	after := p.Stats(p.after(2))
	if len(after) != 1 || after[0].LastError != "" || after[0].State != before[0].State || after[0].Running != 0 {
		t.Errorf("after reports of nobody: %+v", after)
	}
}
