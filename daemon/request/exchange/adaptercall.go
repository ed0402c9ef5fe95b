package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/adapters"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/catalogue"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// A client's call that loads or unloads an adapter goes to all workers of the pool at once: whoever it is for would
// else have to know how many there are, and where each call went.

// callWait bounds the wait for the workers. A load reads some 100 MB, from a disk or the network.
const callWait = time.Minute

// callsAtOnce bounds the workers that are called at a time.
const callsAtOnce = 64

// maxCallAnswer bounds what is read of a worker's answer to a call.
const maxCallAnswer = 64 << 10

// changed drops what was believed of an adapter that a worker has unloaded, or loaded again in place.
func changed(r *admission.Request) {
	if call := admission.ReadCall(r.In.Body); call.InPlace || r.In.Endpoint.Unloads() {
		r.Pool.ForgetAdapter(call.Name)
	}
}

// called is what one worker answered to a call.
type called struct {
	Worker string `json:"worker"`
	Status int    `json:"status,omitempty"` // 0 = it did not answer
	Answer string `json:"answer,omitempty"` // its beginning
	Error  string `json:"error,omitempty"`  // why there is no answer

	of   *worker.Worker
	kind string // Content-Type
	body []byte
}

func (c *called) ok() bool { return c.Status >= 200 && c.Status < 300 }

// callees returns the workers that a call goes to, one of each process. It returns nil if the call goes to the chosen
// worker alone: there is no other, or the call belongs to a session.
func callees(e *Exchange) []*worker.Worker {
	in := e.req.In
	if in.Method != http.MethodPost || in.Path != adapters.LoadPath && in.Path != adapters.UnloadPath ||
		in.Tail != nil || in.Kept != nil || e.choice.Binding().Worker != "" {
		return nil
	}
	all := e.req.Pool.Workers.Reachable(in.Caller.Workers)
	if len(all) < 2 {
		return nil
	}
	return all
}

// callAll sends the call to these workers, and has their lists read anew before it answers: the client will use the
// adapter as soon as it has the answer.
func callAll(ctx context.Context, e *Exchange, to []*worker.Worker) *message.Outbound {
	defer e.Release()
	ctx, stop := context.WithTimeout(ctx, callWait)
	defer stop()
	answers := make([]called, len(to))
	var running sync.WaitGroup
	places := make(chan struct{}, callsAtOnce)
	for i, w := range to {
		places <- struct{}{}
		running.Go(func() {
			answers[i] = call(ctx, &e.req, w)
			<-places
		})
	}
	running.Wait()
	var done []*worker.Worker
	for i := range answers {
		if answers[i].ok() {
			done = append(done, answers[i].of)
		}
	}
	if len(done) > 0 {
		changed(&e.req)
		catalogue.Renew(ctx, e.req.Pool.Workers, done...)
	}
	e.req.In.Seen.Worker, e.req.In.Seen.At = to[0].ID(), time.Now()
	e.req.In.Account.Sent()
	e.req.Journal.Meter.Placed(&e.req.In.Seen, time.Since(e.req.Arrived))
	return summary(e.req.In.Path, answers)
}

// call sends the call to one worker.
func call(ctx context.Context, r *admission.Request, w *worker.Worker) called {
	c := called{Worker: w.Endpoint(), of: w}
	client := r.Pool.Clients.Get(w.URL())
	if client == nil {
		c.Error = "it has been removed"
		return c
	}
	resp, err := client.Do(ctx, &upstream.Request{Method: http.MethodPost, Path: r.In.Path,
		Header: message.WorkerHeader(nil, r.In, r.ID, r.Pool, nil), Body: r.In.Body})
	if err != nil {
		c.Error = attempt.InWords(err)
		return c
	}
	defer resp.Close()
	body, err := epoch.ReadAnswer(resp, maxCallAnswer)
	if err != nil {
		c.Error = attempt.InWords(err)
		return c
	}
	c.Status, c.body = resp.Status, body
	c.kind, c.Answer = resp.Header.Get("Content-Type"), gate.Cut(string(body))
	return c
}

// summary returns the client's answer: a worker's own if all agree, else what each has said.
func summary(path string, all []called) *message.Outbound {
	best, agree := &all[0], true
	for i := range all {
		if all[i].ok() && !best.ok() {
			best = &all[i]
		}
	}
	for i := range all {
		c := &all[i]
		agree = agree && (c.Status == best.Status || best.ok() && (c.ok() || adapters.Needless(path, c.Status, c.body)))
	}
	if agree && best.Status > 0 {
		out := &message.Outbound{Status: best.Status, Body: best.body}
		out.Set("Content-Type", best.kind)
		return out
	}
	f := message.FaultAdapterCall
	body, _ := json.Marshal(struct {
		Error   any      `json:"error"`
		Workers []called `json:"workers"`
	}{struct {
		Message string `json:"message"`
		Type    string `json:"type"`
		Code    string `json:"code"`
	}{f.Message, f.Kind, f.Code}, all})
	out := &message.Outbound{Status: f.Status, Body: body}
	out.Set("Content-Type", "application/json")
	return out
}

// loadAdapter has the worker load the request's adapter, if its model is one and is not there. Where that is refused,
// the lists are read once more before the next worker is asked: the adapter may have been loaded by other hands.
func loadAdapter(ctx context.Context, e *Exchange, s *sending, w *worker.Worker) (release func(), f *attempt.Failure) {
	if e.req.Pool.Loader == nil || e.req.In.Endpoint.Adapters {
		return func() {}, nil
	}
	if s.slotBy.IsZero() {
		s.slotBy = time.Now().Add(adapters.SlotWait)
	}
	model, workers := e.req.Read.Req.Model, e.req.Pool.Workers
	if e.req.Place.Waits() && !workers.Lists(w, model) {
		e.req.Place.Leave() // the place that it has found is free for others while the adapter is loaded
	}
	unused, err := e.req.Pool.Loader.Load(ctx, w, adapters.Want{Name: model, Caller: e.req.In.Caller.Name,
		Until: s.slotBy})
	if err == nil {
		held := new(account.Hold)
		e.req.In.Account.Take(held, account.Adapter, 1)
		return func() { held.Release(); unused() }, nil
	}
	f = &attempt.Failure{Reason: journal.Adapter, Fault: message.FaultUpstream, Grade: route.GradeUnseen, By: w}
	switch {
	case errors.Is(err, adapters.ErrFull):
		f.Fault = message.FaultNoSlot
		if e.choice.Left() == 0 { // none of them has one
			f.Grade = route.GradeFinal
		}
	case errors.Is(err, worker.ErrNoAdapter):
		workers.RenewLists(time.Now())
		catalogue.Await(ctx, workers.Renewing, func(time.Time) bool { return workers.ListedAnywhere(model, false) })
		if !s.unloaded {
			f.Fault = e.req.UnlistedModel()
		}
		return nil, f
	}
	s.unloaded = true // so that nobody knows whether the adapter is one
	return nil, f
}
