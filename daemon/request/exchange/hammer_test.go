package exchange

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
)

// TestHammerLethal: requests that lose their workers, are asked about and are acquitted at once leave no more behind than
// the bound, and each loss of the last two is known.
func TestHammerLethal(t *testing.T) {
	m := newMortals(3)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 2000 {
				in := inbound("POST", "/v1/completions", fmt.Sprintf(`{"prompt":"%d"}`, g*2000+i))
				m.loses(in, g%3, (g+1)%3)
				m.losses(in, time.Now())
				if i%2 == 0 {
					m.acquit(in)
					m.await(context.Background(), in, time.Now())
				}
			}
		})
	}
	all.Wait()
	if n := len(m.bodies); n > maxSuspected || n != len(m.order) {
		t.Errorf("%d bodies, %d in order; at most %d", n, len(m.order), maxSuspected)
	}
	if got := m.losses(inbound("POST", "/v1/completions", m.lastOf(t)), time.Now()); len(got) != 2 {
		t.Errorf("%d losses of the last request; want 2", len(got))
	}
}

// lastOf records one more request, and returns its body.
func (m *mortals) lastOf(t *testing.T) string {
	t.Helper()
	const body = `{"prompt":"last"}`
	m.loses(inbound("POST", "/v1/completions", body), 0, 1)
	return body
}

// TestHammerHabit: answers teach and are judged at once. A mark is strict only with the frame that was learnt, as both
// are read together.
func TestHammerHabit(t *testing.T) {
	h := new(habits)
	at := prompt.Frame{Loose: true}
	const id = "0123456789abcdef0123456789abcdef"
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				one := h.of(0, i%2 == 0)
				switch i % 5 {
				case 0, 1:
					one.learn(id, prompt.OwnerSame, at)
				case 2:
					one.refused(id, true)
				case 3:
					h.forget()
				default:
					if m := one.mark(id, false, false); m.Strict && m.Frame != at {
						t.Errorf("a strict mark with the frame %+v", m.Frame)
						return
					}
				}
			}
		})
	}
	all.Wait()
}
