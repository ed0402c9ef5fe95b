package daemon

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/warmpath/warmpath/daemon/upstream"
	"github.com/warmpath/warmpath/daemon/worker"
)

// maxAttempts bounds how many workers get a request that somebody may already have begun to work on. Workers that cannot
// be connected to do not count: they have seen nothing of it.
const maxAttempts = 3

// send tries the workers in the order of the choice until one gives a response head.
func (e *exchange) send(ctx context.Context) (out *Outbound, streaming bool) {
	r := &upstream.Request{Method: e.in.Method, Path: e.in.Path, Header: forRequest(e.in.Header), Body: e.in.Body}
	if e.in.Query != "" {
		r.Path += "?" + e.in.Query
	}
	last := faultUpstream
	for seen, i := 0, 0; i < len(e.result.Order) && seen < maxAttempts; i++ {
		row := int(e.result.Order[i])
		a, err := e.attempt(ctx, row, r)
		if err == nil && (a.resp.Status != 503 || i == len(e.result.Order)-1 || seen == maxAttempts-1) {
			return e.answer(a, row)
		}
		if err == nil { // a 503 says: not me, somebody else
			a.end(worker.Outcome{Kind: worker.Failed, Err: "HTTP 503"})
			a.resp.Close()
			e.retry("worker_503", row)
			seen++
			continue
		}
		if errors.Is(err, upstream.ErrRequest) {
			return e.refuse(faultRequest), false
		}
		if ctx.Err() != nil {
			return faultUpstream.outbound(), false // nobody reads it
		}
		var t net.Error
		if errors.As(err, &t) && t.Timeout() && !upstream.NotSent(err) {
			last = faultTimeout
			e.retry("timeout", row)
			break // it may still be working on it, and ten minutes are over
		}
		if upstream.NotSent(err) {
			e.retry("connect", row)
			continue
		}
		e.retry("no_answer", row)
		seen++
	}
	return e.refuse(last), false
}

// attempt is one request at one worker.
type attempt struct {
	pool   *pool
	worker *worker.Worker
	ticket *worker.Ticket
	resp   *upstream.Response
	sent   time.Time
}

func (a *attempt) end(o worker.Outcome) { a.ticket.End(time.Now(), o) }

// attempt sends the request to the worker of a row. On an error the ticket has ended.
func (e *exchange) attempt(ctx context.Context, row int, r *upstream.Request) (*attempt, error) {
	w := e.view.workers[row]
	client := e.pool.client(w)
	if client == nil { // removed since the snapshot
		return nil, &net.OpError{Op: "dial", Err: errors.New("worker was removed")}
	}
	a := &attempt{pool: e.pool, worker: w, sent: time.Now()}
	a.ticket = e.pool.workers.Begin(w, worker.Dispatch{PromptTokens: e.length, CachedTokens: e.believed(row), Whole: !e.req.Stream}, a.sent)
	e.learnPrompt(w.Slot())
	e.bindTo(w)
	resp, err := client.Do(ctx, r)
	if err == nil {
		a.resp = resp
		return a, nil
	}
	kind := worker.Broken
	switch {
	case ctx.Err() != nil, errors.Is(err, upstream.ErrRequest):
		kind = worker.Canceled
	case upstream.NotSent(err):
		kind = worker.Refused
	}
	a.end(worker.Outcome{Kind: kind, Err: inWords(err)})
	return nil, err
}

// inWords says what went wrong with a worker. The error itself names addresses, which pages and clients must not show.
func inWords(err error) string {
	var t net.Error
	switch {
	case upstream.NotSent(err):
		return "cannot be connected to"
	case errors.Is(err, upstream.ErrStalled):
		return "sent nothing within stream_timeout"
	case errors.As(err, &t) && t.Timeout():
		return "did not answer within header_timeout"
	}
	return "closed or reset the connection before the end of its answer"
}

// learnPrompt enters the prompt in the index at once: events and answers come too late for the next request.
func (e *exchange) learnPrompt(slot uint32) {
	for i := range e.req.Chains {
		e.space.Touch(slot, e.req.Chains[i].Hashes)
		if e.retries == 0 {
			e.pool.reuse.Note(e.req.Chains[i].Hashes, e.block)
		}
	}
}

func (e *exchange) retry(reason string, row int) {
	e.retries++
	e.d.metrics.retried(reason)
	e.pool.log.Info("request goes to the next worker", "worker", e.view.workers[row].ID(), "reason", reason)
}
