package exchange

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/resume"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// continued is a stream with which another worker goes on where its own breaks off. The rest is an exchange of its own:
// so it is chosen, queued, retried and learnt from as any request, and another one may go on with that.
type continued struct {
	e     *Exchange
	ctx   context.Context
	a     *attempt.Attempt
	draft *resume.Draft
	work  account.Work // the body stays until the stream has ended
	left  int8         // how often
	held  int8         // pauses that have ended parts of it

	begun  chan struct{} // is closed when next and rest are known; nil = the first worker has the stream
	exact  bool          // the engine's own counts are known
	result journal.Continuation
	next   *Exchange
	rest   *message.Outbound // nil = nobody goes on
	joined *resume.Joined    // nil before the second stream is read
	over   bool              // of the second stream: the client has all that it gets of it
}

// mayContinue has another worker go on with a stream where it breaks off, if it is one of which that can be done.
func (e *Exchange) mayContinue(ctx context.Context, a *attempt.Attempt, out *message.Outbound) {
	r, left, held := &e.req, int8(0), int8(0)
	switch {
	case r.Entry.Op == message.Use:
		left = int8(r.Pool.Continue)
	case r.Rest != nil:
		left, held = r.Rest.Left, r.Rest.Pauses
	}
	kind := r.Read.Req.Kind
	if left <= 0 || out.Status != http.StatusOK || a.Against() != judge.Canceled || r.Entry.Door != nil ||
		r.Entry.Session != "" || r.In.Account == nil || r.In.Tail != nil || r.In.Kept != nil || !r.Read.Clear ||
		!r.Generates() || prompt.KindOf(r.In.Method, r.In.Path) != kind ||
		!message.IsEvents(out.Get("Content-Type")) || message.Coded(out.Header) {
		return
	}
	c := &continued{e: e, ctx: ctx, a: a, left: left, held: held}
	c.draft = resume.New(kind, r.In.Body)
	if c.draft == nil {
		return
	}
	r.In.Account.Begin(&c.work, true)
	a.HandOver()
	out.Stream = c
}

// HoldsPlace reports whether the stream keeps others from its worker until it has been read.
func (c *continued) HoldsPlace() bool { return c.a.Stream().HoldsPlace() }

// Read implements io.Reader.
func (c *continued) Read(p []byte) (int, error) {
	given := upstream.Given(p)
	return c.ReadRoom(&given)
}

// ReadRoom is Read into the memory of a room.
func (c *continued) ReadRoom(room upstream.Room) (int, error) {
	if c.begun == nil {
		n, err := c.a.Stream().ReadRoom(room)
		if n > 0 && err == nil {
			c.draft.Feed(room.Take()[:n])
		}
		if err != attempt.ErrBroken {
			return n, err
		}
		used := c.e.req.In.Seen.Usage
		if c.draft.Lacks(c.a.Lost()) { // the engine has counted what the client has not got
			used.Output = 0
		}
		c.exact = c.draft.Count(used.Prompt, used.Output)
		c.begun = make(chan struct{})
		go c.begin()
	}
	if c.joined == nil && !c.over {
		if n := c.await(room); n > 0 {
			return n, nil
		}
	}
	if !c.over {
		n, err := c.joined.Read(room.Take())
		if n > 0 {
			return n, nil
		}
		if c.conclude(err) && err != io.EOF {
			return 0, err
		}
	}
	return c.a.Stream().ReadRoom(room)
}

// tokenize returns how many tokens the worker that comes first makes of a text, 0 if it does not say.
func (c *continued) tokenize(text string) int {
	if text == "" {
		return 0
	}
	r := &c.next.req
	body, _ := json.Marshal(map[string]any{"model": r.Read.Req.Model, "prompt": text, "add_special_tokens": false})
	var said struct{ Count int }
	r.Ask(c.ctx, tokenizeWait, c.next.Chosen().URL(),
		upstream.Request{Method: http.MethodPost, Path: "/tokenize", Body: body}, &said)
	return said.Count
}

// tokenizeWait bounds the wait for the tokens of a text, while the client waits for more of it.
const tokenizeWait = 2 * time.Second

// await waits until it is known who goes on, and returns the length of a comment for the client if that takes long.
func (c *continued) await(room upstream.Room) int {
	if comments := c.e.req.In.Comments; comments != nil && comments.Every > 0 {
		late := time.NewTimer(comments.Every)
		defer late.Stop()
		select {
		case <-c.begun:
		case <-late.C:
			return copy(room.Take(), ":\n\n")
		}
	}
	<-c.begun
	if c.rest == nil {
		c.conclude(nil)
		return 0
	}
	c.joined = c.draft.Join(c.rest.Stream)
	r, by := &c.e.req, c.next.by
	if chains := c.next.req.Read.Req.Chains; len(chains) == 1 {
		r.Pool.Book.GoesOn(chains[0].Hashes, by.ID())
	}
	r.Journal.Continues(r.In, r.Pool, journal.Step{Reason: journal.Broken, Worker: c.a.Trip.Worker(),
		After: time.Since(r.Arrived)}, by)
	return 0
}

// conclude ends the second stream, after that error, and reports whether the client has had all of its answer, or has
// left. If not, the first stream is still to be read: it ends as it would have ended alone.
func (c *continued) conclude(err error) bool {
	c.over = true
	r := &c.e.req
	o, whole := judge.Outcome{Kind: judge.Answered}, err == io.EOF
	switch {
	case c.joined == nil:
	case err == resume.ErrOther:
		c.result = journal.ContinuedOther
	default:
		c.result = journal.ContinuedBroken
		if prompt, output, known := c.joined.Usage(); known {
			used := &r.In.Seen.Usage
			used.Prompt, used.Output, used.Known, o.Tokens = prompt, output, true, output
		}
	}
	switch cause := message.CauseOf(c.ctx); {
	case whole:
		c.result, r.In.Seen.End = journal.ContinuedWhole, message.EndContinued
	case errors.Is(cause, message.ErrClientGone):
		c.result, r.In.Seen.End, o.Kind = journal.ContinuedLeft, "client_gone", judge.Canceled
	}
	if c.rest != nil {
		c.rest.Stream.Close()
		seen, then := &r.In.Seen, &c.next.req.In.Seen
		seen.Worker, seen.Attempts = then.Worker, append(seen.Attempts, then.Attempts...)
		seen.MadeToo(then.MadeWith())
	}
	r.Journal.Discontinued(r.In, r.Pool, c.result)
	if c.result != journal.ContinuedWhole && c.result != journal.ContinuedLeft {
		c.a.BreakOff(c.draft.Next())
		return false
	}
	c.a.Concluded(o, whole)
	return true
}

// begin finds the worker that goes on.
func (c *continued) begin() {
	defer close(c.begun)
	r, now := &c.e.req, time.Now()
	c.result = journal.ContinuedNone
	if r.Lethal.Await(c.ctx, r.OfClient(), now) >= admission.MaxDeaths {
		c.result = journal.ContinuedLethal
		return
	}
	ask, ok := c.draft.Ask()
	if !ok {
		c.result = journal.ContinuedNot
		return
	}
	in := &message.Inbound{Epoch: r.In.Epoch, Endpoint: message.Classify(http.MethodPost, ask.Path),
		Method: http.MethodPost, Path: ask.Path, Query: r.In.Query, Body: ask.Body, ID: r.In.ID, Remote: r.In.Remote,
		Host: r.In.Host, TLS: r.In.TLS, Caller: r.In.Caller, Account: r.In.Account,
		Comments: r.In.Comments}
	in.SetHeader(r.In.Header)
	if c.a.Paused(c.ctx, r) && c.held < admission.MaxPauses { // a trainer ended it: the worker has not failed
		c.held++
	} else {
		c.left--
	}
	next := new(Exchange)
	next.req = admission.Request{Journal: r.Journal.Legs, Lethal: r.Lethal, In: in, ID: r.ID, Epoch: r.Epoch,
		Kept: r.Kept, Alias: r.Alias, Arrived: now, Cookie: r.Cookie,
		Rest:  &admission.Rest{Of: r.OfClient(), From: c.a.Trip.Worker(), Left: c.left, Pauses: c.held},
		Entry: message.Entry{Pool: r.Pool.Name, Op: message.Continuing, Salt: r.Entry.Salt, Model: r.Entry.Model}}
	if out := next.Choose(c.ctx); out != nil {
		return
	}
	c.next = next
	if !c.exact { // by its events: an engine may send several tokens in one
		if n := c.tokenize(c.draft.Text()); n > 0 {
			c.draft.Count(0, n)
			in.Body, ok = c.draft.Bound(in.Body)
		}
		if !ok {
			c.result = journal.ContinuedNot
			next.Release()
			return
		}
	}
	out := next.Send(c.ctx)
	if out.Stream == nil {
		return
	}
	if out.Status != http.StatusOK || !message.IsEvents(out.Get("Content-Type")) {
		out.Stream.Close()
		return
	}
	c.rest = out
}

// Close ends the stream.
func (c *continued) Close() error {
	if c.begun != nil {
		<-c.begun // the client has left, which ends the wait
		if !c.over {
			c.conclude(message.ErrClientGone)
		}
	}
	c.work.End(time.Now())
	return c.a.Stream().Close()
}

var _ io.ReadCloser = (*continued)(nil)
