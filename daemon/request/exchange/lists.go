package exchange

import (
	"context"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// An adapter is used in the moment in which it is loaded, and the workers' lists of models are some seconds old. This
// file has them read anew where they would be the ground of a refusal, and where an answer contradicts them.

// listWait bounds how long a request waits for lists.
const listWait = time.Second

// renewLists has the lists of all workers read anew, and chooses again as they come. Nobody listed the model.
func renewLists(ctx context.Context, e *Exchange, ask *route.Ask) (v route.Verdict) {
	workers := e.req.Pool.Workers
	workers.RenewLists(time.Now())
	ask.Patient = false
	awaitLists(ctx, workers.Renewing, func(at time.Time) bool {
		ask.At = at
		v = e.req.Pool.Choose(&e.choice, ask)
		return v != route.UnknownModel
	})
	return v
}

// renewList has the list of w read anew, which has just loaded or unloaded an adapter, and waits for it: the client
// will use the adapter as soon as it has the answer.
func renewList(ctx context.Context, r *admission.Request, w *worker.Worker) {
	workers := r.Pool.Workers
	workers.RenewList(w)
	awaitLists(ctx, func() int {
		if workers.Renews(w) {
			return 1
		}
		return 0
	}, func(time.Time) bool { return false })
}

// awaitLists waits until missing, which counts lists that are still to come, returns 0. It calls look at first and
// whenever the number has changed, and ends when that returns true.
func awaitLists(ctx context.Context, missing func() int, look func(at time.Time) (done bool)) {
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
