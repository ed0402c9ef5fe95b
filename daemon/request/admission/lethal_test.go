package admission

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// mortals are workers that requests may end.
type mortals struct {
	*Lethal
	pool *worker.Pool
	ids  *watched
}

func newMortals(n int) *mortals {
	m := &mortals{Lethal: NewLethal(), ids: &watched{ids: map[string]uint64{}}}
	c := worker.Config{Watcher: m.ids}
	for i := range n {
		c.Workers = append(c.Workers, worker.Spec{ID: fmt.Sprint("w", i), URL: fmt.Sprint("http://w", i)})
	}
	m.pool = worker.New(c, time.Now())
	for i := range n {
		m.checked(i, true)
	}
	return m
}

// checked is a health check of worker i.
func (m *mortals) checked(i int, good bool) {
	id := m.ids.ids[fmt.Sprint("http://w", i)]
	if good {
		m.pool.Healthy(id, time.Now())
	} else {
		m.pool.Dead(id, "refused", time.Now())
	}
}

// loses has workers lose the connection of a request.
func (m *mortals) loses(in *message.Inbound, workers ...int) {
	sent := time.Now()
	time.Sleep(time.Millisecond)
	for _, i := range workers {
		m.Lose(in, Loss{Pool: m.pool, Worker: m.pool.At(uint32(i)).Key(), Sent: sent, At: time.Now()})
	}
}

// TestLethal: how many workers have ended with a request, and how long it waits until that is known.
func TestLethal(t *testing.T) {
	first := inbound("POST", "/v1/completions", `{"prompt":"deadly"}`)
	f := func(what string, lost []int, then func(m *mortals), ctx context.Context, want int8, waits time.Duration) {
		t.Helper()
		synctest.Test(t, func(*testing.T) {
			m := newMortals(3)
			time.Sleep(time.Second)
			m.loses(first, lost...)
			if then != nil {
				go func() {
					time.Sleep(time.Second)
					then(m)
				}()
			}
			now := time.Now()
			ctx, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			got := m.Await(ctx, first, now)
			if took := time.Since(now).Round(100 * time.Millisecond); got != want || took != waits {
				t.Errorf("%s: %d after %v; want %d after %v", what, got, took, want, waits)
			}
			synctest.Wait()
		})
	}
	goes := t.Context()
	left, leave := context.WithCancel(goes)
	leave()
	f("nobody lost it", nil, nil, goes, 0, 0)
	f("one", []int{0}, nil, goes, 1, 0)
	f("one that had it three times", []int{0, 0, 0}, nil, goes, 1, 0)
	f("two, and nobody asks them", []int{0, 1}, nil, goes, 2, judged)
	f("two, and the client has left", []int{0, 1}, nil, left, 2, 0)
	f("two, which are dead", []int{0, 1}, func(m *mortals) {
		m.checked(0, false)
		m.checked(1, false)
	}, goes, 2, time.Second)
	f("two, one of which lives on", []int{0, 1}, func(m *mortals) { m.checked(0, true) }, goes, 1, time.Second)
	f("three, the first of which lives on", []int{0, 1, 2}, func(m *mortals) {
		for i := range 3 {
			m.checked(i, i == 0)
		}
	}, goes, 2, time.Second)
}

// TestWhatIsRemembered: a request is known by its path and its body, for five minutes, until a worker answers it.
func TestWhatIsRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMortals(2)
		deadly := inbound("POST", "/v1/completions", `{"prompt":"deadly"}`)
		m.loses(deadly, 0, 1)
		f := func(what string, in *message.Inbound, want int8) {
			t.Helper()
			if got := m.Deaths(in, time.Now()); got != want {
				t.Errorf("%s: %d; want %d", what, got, want)
			}
		}
		f("the same", deadly, 2)
		f("another path", inbound("POST", "/v1/embeddings", `{"prompt":"deadly"}`), 0)
		f("another body", inbound("POST", "/v1/completions", `{"prompt":"kind"}`), 0)
		time.Sleep(5*time.Minute - time.Second)
		f("nearly five minutes later", deadly, 2)
		time.Sleep(2 * time.Second)
		f("five minutes later", deadly, 0)
		if len(m.bodies)+len(m.order) > 0 || m.some.Load() {
			t.Errorf("%d bodies are kept", len(m.bodies))
		}
		m.loses(deadly, 0)
		time.Sleep(time.Second)
		m.loses(deadly, 0)
		f("a worker that had it again", deadly, 2)
		m.loses(deadly, 0, 1)
		m.Acquit(deadly)
		f("answered", deadly, 0)
		for i := range maxSuspected + 1 {
			m.loses(inbound("POST", "/v1/completions", fmt.Sprint(i)), 0)
		}
		if len(m.bodies) != maxSuspected || len(m.order) != maxSuspected {
			t.Errorf("%d bodies are kept; want %d", len(m.bodies), maxSuspected)
		}
	})
}
