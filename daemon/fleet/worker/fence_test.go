package worker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// fencedPool has a worker for each text, which is its labels: up, without requests.
func fencedPool(labels ...string) *Pool {
	return upPoolOf(Config{Workers: labeled(labels...), MaxInFlight: 2})
}

func labeled(labels ...string) []Spec {
	all := specs(len(labels))
	for i, text := range labels {
		all[i].Labels = map[string]string{}
		for label := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(label, "=")
			all[i].Labels[name] = value
		}
	}
	return all
}

// inFence returns the workers and the counts that a request in the fence gets, or why it gets none.
func inFence(p *Pool, f Fence, at float64) string {
	var c Count
	_, ws, standing := p.Snapshot(Query{Fence: f, At: p.after(at), Count: &c}, nil, nil)
	var ids []string
	for _, w := range ws {
		ids = append(ids, w.ID())
	}
	if len(ids) == 0 {
		ids = []string{standing.String()}
	}
	return fmt.Sprintf("%s %d/%d", strings.Join(ids, " "), c.Up, c.Configured)
}

// TestFence: a request gets rows of the workers alone that have all labels of its fence, and learns why there are none.
func TestFence(t *testing.T) {
	p := fencedPool("for=a tier=x", "for=a", "for=b", "")
	f := func(want string, labels ...string) {
		t.Helper()
		if got := inFence(p, labels, 20); got != want {
			t.Errorf("%v: %s; want %s", labels, got, want)
		}
	}
	f("w0 w1 w2 w3 4/4")
	f("w0 w1 2/2", "for=a")
	f("w0 1/1", "for=a", "tier=x")
	f("outside of the fence 0/0", "for=b", "tier=x") // each label is there, and no worker has both
	f("outside of the fence 0/0", "for=c")
	f("outside of the fence 0/0", "for=a", "unknown=x")

	p.kill(2, 21)
	f("down 0/1", "for=b")
	f("w0 w1 w3 3/4")
	for range 2 {
		p.send(0, Dispatch{}, 21)
		p.send(1, Dispatch{}, 21)
	}
	f("full 2/2", "for=a")
	if got := inFence(New(Config{}, start), Fence{"for=a"}, 1); got != "down 0/0" {
		t.Errorf("a pool without workers: %s", got)
	}
}

// TestFenceAfterTheSnapshot: a worker that loses a label takes no request that was decided before, a removed one keeps
// the labels that it had, and nobody but those inside counts as one that may take a request over.
func TestFenceAfterTheSnapshot(t *testing.T) {
	p := fencedPool("for=a", "for=a", "for=b")
	acme := Dispatch{Fence: Fence{"for=a"}}
	w := p.fleet.workers[0]
	begins := func(want bool) {
		t.Helper()
		var ticket Ticket
		if got := p.Begin(&ticket, w, acme, p.after(20)); got != want {
			t.Errorf("begins: %t; want %t", got, want)
		} else if got {
			ticket.End(p.after(20), judge.Outcome{Kind: judge.Answered})
		}
	}
	begins(true)
	p.Update(labeled("for=b", "for=a", "for=b"), p.after(20))
	begins(false)
	p.Update(labeled("aaa=1 for=a", "for=a", "for=b"), p.after(20)) // the bits of the set move
	begins(true)
	p.Update(labeled("zzz=1", "for=a", "for=b")[1:], p.after(20))
	begins(true)

	if k := p.send(0, acme, 21); k.Elsewhere(p.after(21)) { // w1 is the only one inside now
		t.Error("a request in the fence may go elsewhere")
	}
	q := fencedPool("for=a", "for=b", "for=a")
	moved := q.send(0, acme, 21) // for=a is bit 0
	for _, c := range []struct {
		labels []string
		want   bool
	}{
		{[]string{"for=a", "aaa=1", "aaa=1"}, false}, // it is bit 1, and another label has bit 0
		{[]string{"aaa=1 for=a", "for=b", "for=a"}, true},
		{[]string{"for=x", "for=x", "for=x"}, false},
	} {
		q.Update(labeled(c.labels...), q.after(21))
		if got := moved.Elsewhere(q.after(21)); got != c.want {
			t.Errorf("sent before the labels became %q: it may go elsewhere: %t", c.labels, got)
		}
	}
	if open := p.send(0, Dispatch{}, 21); !open.Elsewhere(p.after(21)) {
		t.Error("a request without a fence may go nowhere else")
	}
}

// TestFenceOfLists: models, standings and the workers without a row are those inside.
func TestFenceOfLists(t *testing.T) {
	p := fencedPool("for=a", "for=b")
	for i, m := range []string{"ma", "mb"} {
		p.Listed(p.fleet.workers[i].number, []string{m}, []json.RawMessage{json.RawMessage(`{"id":"` + m + `"}`)})
	}
	if got := fmt.Sprintf("%s", p.Models(Fence{"for=b"})); got != `[{"id":"mb"}]` {
		t.Errorf("models %s", got)
	}
	if got := len(p.Models(Fence{"for=c"})); got != 0 {
		t.Errorf("%d models for nobody", got)
	}
	if s := p.Standing("w0", "", Fence{"for=b"}, p.after(20)); s != Gone {
		t.Errorf("a foreign worker is %v", s)
	}
	if s := p.Standing("w1", "", Fence{"for=b"}, p.after(20)); s != Ready {
		t.Errorf("its own is %v", s)
	}
	if others := p.Others(nil, Fence{"for=b"}, p.after(20), nil, 9); len(others) != 1 || others[0].ID != "w1" {
		t.Errorf("others: %+v", others)
	}
}
