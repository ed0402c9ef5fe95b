package route

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/sdk/abi"
)

// TestDropBacklogged: of the workers above the bound only those stay that hold more of the prompt than any below it.
func TestDropBacklogged(t *testing.T) {
	s := newScene(t, "a b c d e")
	all := s.chosen(s.ask(first, Claim{})).fleet.workers
	f := func(most float64, bound, waits, matched, want string) {
		t.Helper()
		var f fleet
		for i, w := range all {
			f.frame.Rows = append(f.frame.Rows, abi.Row{Wait: float64(waits[i] - '0'), GPU: uint32(matched[i] - '0')})
			f.workers, f.slots, f.frame.WorkerIDs = append(f.workers, w), append(f.slots, w.Slot()), append(f.frame.WorkerIDs, w.ID())
		}
		f.best()
		f.dropBacklogged(most, bound)
		if got := strings.Join(f.frame.WorkerIDs, ""); got != want || len(f.frame.Rows) != len(want) {
			t.Errorf("waits %s, matched %s: left %q; want %q", waits, matched, got, want)
		}
		for i, w := range f.workers {
			if w.ID() != f.frame.WorkerIDs[i] || w.Slot() != f.slots[i] || f.frame.Rows[i].GPU > f.frame.Header.BestMatch {
				t.Errorf("waits %s, matched %s: row %d is not of %s", waits, matched, i, f.frame.WorkerIDs[i])
			}
		}
	}
	f(2, "", "01230", "00000", "abce")
	f(2, "", "01933", "00120", "abcd")
	f(2, "", "01933", "02321", "abc")
	f(2, "e", "01933", "02321", "abce")
	f(2, "", "39333", "01234", "abcde") // all are: nobody was offered, or it is asked what they hold
	f(0, "", "39333", "01234", "abcde") // no bound
}
