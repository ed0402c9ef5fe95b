package catalogue

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// listWait bounds how long a request waits for lists.
const listWait = time.Second

// Renew has the lists of workers read anew that have just loaded or unloaded an adapter, and waits for them: the client
// will use the adapter as soon as it has the answer.
func Renew(ctx context.Context, workers *worker.Pool, of ...*worker.Worker) {
	for _, w := range of {
		workers.RenewList(w)
	}
	Await(ctx, func() (n int) {
		for _, w := range of {
			if workers.Renews(w) {
				n++
			}
		}
		return n
	}, func(time.Time) bool { return false })
}

// Await waits until missing, which counts lists that are still to come, returns 0. It calls look at first and whenever
// the number has changed, and ends when that returns true.
func Await(ctx context.Context, missing func() int, look func(at time.Time) (done bool)) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	began, before := time.Now(), -1
	for now := began; ; {
		n := missing()
		if n != before && look(now) || n == 0 || now.Sub(began) >= listWait {
			return
		}
		before = n
		select {
		case now = <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
