package exchange

import (
	"context"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/worker"
)

// An adapter is used in the moment in which it is loaded, and the workers' lists of models are some seconds old. This
// file has them read anew where they would be the ground of a refusal, and where an answer contradicts them.

// listWait bounds how long a request waits for lists.
const listWait = time.Second

// renewLists has the lists of all workers read anew, and chooses again as they come. Nobody listed the model.
func (r *request) renewLists(ctx context.Context, ask *route.Ask) (v route.Verdict) {
	workers := r.pool.Workers
	workers.RenewLists(time.Now())
	ask.Patient = false
	awaitLists(ctx, workers.Renewing, func(at time.Time) bool {
		ask.At = at
		v = r.pool.Choose(&r.choice, ask)
		return v != route.UnknownModel
	})
	return v
}

// renewList has the list of w read anew, which has just loaded or unloaded an adapter, and waits for it: the client will
// use the adapter as soon as it has the answer.
func (r *request) renewList(ctx context.Context, w *worker.Worker) {
	workers := r.pool.Workers
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

// lacks reports whether the worker answers that it does not have what the request is about: a model that it lists, or
// the adapter that is to be unloaded.
func (w weigher) lacks(b *body) bool {
	if b.a.resp.Status != http.StatusNotFound {
		return false
	}
	if w.in.Endpoint.Adapters {
		return w.in.Endpoint.unloads()
	}
	model := w.read.req.Model
	return model != "" && w.understood() && w.responses() == [2]string{} &&
		w.pool.Workers.Lists(b.a.trip.Worker(), model)
}

// differs reports whether another worker may accept what this one refuses. A worker that lacks one adapter is not at
// fault: that is no sign against it.
func (w weigher) differs(b *body) bool {
	if w.in.Endpoint.Adapters {
		b.excused = true
		return true
	}
	if b.a.trip.Doubtful() {
		return true
	}
	b.excused = w.lacks(b)
	return b.excused
}
