package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/session"
	"github.com/warmpath/warmpath/daemon/worker"
	"github.com/warmpath/warmpath/sdk/abi"
)

// crowd counts the sessions that live on each worker, for strategies that place new ones. It is near enough: what requests
// open and close is added at once, what expired or other routers did is found by counting again.
type crowd struct {
	mu   sync.Mutex // guards live
	live map[string]int
}

func (c *crowd) add(worker string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.live == nil {
		c.live = map[string]int{}
	}
	c.live[worker] = max(0, c.live[worker]+n)
}

// fill writes the counts into the rows of a view.
func (c *crowd) fill(rows []abi.Row, ws []*worker.Worker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range rows {
		rows[i].Sessions = uint32(c.live[ws[i].ID()])
	}
}

// recount is the pulse of counting; restFactor bounds its cost to 2 % of a processor.
const (
	recount    = time.Second
	restFactor = 50
)

// run counts until ctx ends. A million sessions take half a second.
func (c *crowd) run(ctx context.Context, b *session.Bindings) {
	for wait := recount; ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		began := time.Now()
		live := map[string]int{}
		for id, n := range b.Live(began) {
			live[id] = n[session.Opened] + n[session.Key]
		}
		c.mu.Lock()
		c.live = live
		c.mu.Unlock()
		wait = max(recount, restFactor*time.Since(began))
	}
}
