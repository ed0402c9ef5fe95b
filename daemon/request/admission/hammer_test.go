package admission

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
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
					m.Acquit(in)
					m.Await(context.Background(), in, time.Now())
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
