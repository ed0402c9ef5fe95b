package worker

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
)

// TestFailsAlone: the histories after which a worker's 500 is sent to another worker.
func TestFailsAlone(t *testing.T) {
	f := func(what string, want bool, history ...string) { // of each worker; the verdict is on w0
		t.Helper()
		p := upPool(t, len(history))
		for i, h := range history {
			for _, c := range h {
				kind := judge.Answered
				if c == 'x' {
					kind = judge.Failed
				}
				p.send(i, Dispatch{}, 1).End(p.after(1), judge.Outcome{Kind: kind})
			}
		}
		if got := p.FailsAlone(p.fleet.workers[0]); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("the first answer of all", true, "", "")
	f("the first answer of one worker", true, "", "........")
	f("the first failure of a good worker", false, "........", "........")
	f("the second in a row", true, "........x", "........")
	f("two of its last four", true, "........x..", "........")
	f("every answer, beside two good ones", true, "xxxx", "........", "........")
	f("all fail alike", false, "xxxx", "xxxx", "xxxx")
	f("half of the fleet fails", true, "xxxx", "xxxx", "........", "........")
	f("requests that fail everywhere, one in three", false, "..x..x..x", "..x..x..x", ".x..x..x.")
	f("a good worker beside a bad one", false, "........", "xxxxxxxx")
}
