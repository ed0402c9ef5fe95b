package attempt

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// This file has the end of an answer that the client gets: what it shows about its worker, and who is told.

// aborts reports whether the worker ended without an answer what it had accepted. It is then shutting down or paused.
// An error that the worker names does not count, whatever its code: one bad request would take every worker that it is
// tried at out of the pool.
func (b *body) aborts() bool {
	switch b.reply.FinishReason() {
	case "abort":
		return true
	case "error":
		return false
	}
	return !b.reply.ReportedError() && b.reply.Clean()
}

// failedInside reports whether the worker reported a failure inside a stream. An error event of its own goes to the
// client as it is, and the stream ends as the worker ends it: a broken end can make a client lose the event before it
// reads it. A finish_reason that looks like an end, with [DONE] behind it, would be taken for a whole answer and is
// replaced.
func (b *body) failedInside() bool {
	return b.events && b.reply != nil && b.reply.Failed() && !b.rejects() || b.foreign()
}

// unfinished reports whether a stream ended properly in HTTP but not as an answer does, which is with a reason to
// finish or [DONE].
func (b *body) unfinished() bool {
	return b.events && b.reply != nil && b.ok && b.reply.Understood() && b.r.Generates() && !b.reply.Clean() &&
		b.reply.FinishReason() == "" && !b.reply.ReportedError()
}

// finish records the end of an answer that went to the client, once. It reports it to the route, which updates index,
// session and the worker's load, and the meter counts it. err is io.EOF at a proper end.
func (b *body) finish(err error) {
	b.once.Do(func() {
		if b.broke != nil && b.broke.left != nil {
			b.conclude(*b.broke.left, false, time.Now())
			return
		}
		err = b.ending(err)
		o := b.outcome(err)
		now := b.r.Arrived.Add(b.came)
		if b.came == 0 {
			now = time.Now()
		}
		b.leave(&o, err == io.EOF, now)
		b.conclude(o, err == io.EOF, now)
	})
}

// leave ends the trip of an answer.
func (b *body) leave(o *judge.Outcome, whole bool, now time.Time) {
	seen := &b.r.In.Seen
	seen.Usage = b.a.endTrip(o, route.End{Reply: b.reply, Whole: whole, Status: b.resp.Status, At: now})
	if span := b.r.In.Trace.Span; span != nil && b.reply != nil {
		span.Finished(b.reply.ID(), b.reply.FinishReason())
	}
	// the decoder's answer may have no such count
	if b.edited != nil && b.edited.counts != nil && seen.Usage.Known {
		seen.Usage.Cached, seen.Usage.CachedKnown = b.edited.counts().Cached, true
	}
	if result := b.a.Trip.HintResult(&seen.Usage); result != "" {
		b.r.Journal.Meter.Hinted(b.r.Pool.Name, result)
	}
	seen.Made(b.a.Trip.Weights())
	b.learnHabit(whole)
	b.resp.Release()
}

// conclude records the end of an answer for its client.
func (b *body) conclude(o judge.Outcome, whole bool, now time.Time) {
	seen := &b.r.In.Seen
	if b.ok || seen.Usage.Known { // an engine that refuses has computed nothing
		b.r.Limits.Use(&b.r.Read, admission.Answered{Usage: seen.Usage, Streamed: b.r.Limits.Streamed(b.r.Pool, b.reply),
			Whole: whole})
	}
	if whole && o.Kind != judge.Failed && o.Kind != judge.Dying && b.r.Lethal.Suspects() {
		b.r.Lethal.Acquit(b.r.OfClient())
	}
	b.followJob(seen.Usage, whole)
	b.giveBack()
	seen.At, seen.Total = now, now.Sub(b.r.Arrived)
	b.r.Journal.Meter.Ended(seen, journal.End{Status: b.resp.Status, Outcome: o, Took: seen.Total,
		Translated: b.r.Entry.Door != nil})
}

// followJob takes what an answer that goes to the client says of a job: that one runs, or has ended.
func (b *body) followJob(used record.Usage, whole bool) {
	r, in, e, jobs := b.r, b.r.In, &b.r.In.Endpoint, &b.r.Kept.Jobs
	if b.reply == nil || r.Entry.Op != message.Use {
		return
	}
	status := b.reply.Status()
	if jobs.Follows(in) {
		if in.Method == http.MethodDelete || status != "" && !admission.Running(status) {
			jobs.End(in.Stored(e.ID), used)
		}
		return
	}
	id, at, runs := "", "", admission.Running(status)
	if b.events { // each stream is in progress before its end
		runs = r.Read.Req.Background && !whole
	}
	switch {
	case !runs:
	case r.Read.Req.Kind == prompt.Responses:
		id, at = b.reply.ID(), "/v1/responses"
	case b.jobs != nil && e.Creates:
		id, at = b.jobs.ids[0], e.Path
		if i := strings.Index(at, "/"+e.ID); e.ID != "" && i > 0 { // as of a video that is made of another one
			at = at[:i]
		}
	}
	if id != "" && in.Account.Spent().Limited() {
		jobs.Begin(r, id, b.a.Trip.Worker().URL(), at)
	}
}

// noteServed records that the client has the whole answer, though the worker has not ended it. It is called when all
// that was learnt of the answer has been passed on. Many clients close at [DONE], or as soon as they have a tool call.
func (b *body) noteServed() {
	if b.served || b.reply == nil || b.reply.FinishReason() == "" && !b.reply.Clean() && !b.reply.ReportedError() {
		return
	}
	req := b.r.Read.Req
	b.served = b.reply.Whole(max(1, req.N) * max(1, len(req.Chains)))
}

// ending returns err as the end of the answer. A client that leaves once it has been served ends the answer well.
func (b *body) ending(err error) error {
	switch {
	case !b.served, err == io.EOF,
		!errors.Is(err, message.ErrClientGone) && message.CauseOf(b.a.ctx) != message.ErrClientGone:
		return err
	}
	if !b.reply.ReportedError() {
		b.reply.EndHere()
	}
	return io.EOF
}

// outcome returns what the end of the answer means for the worker. It records and logs an end that is not good.
func (b *body) outcome(err error) judge.Outcome {
	seen, cause := &b.r.In.Seen, message.CauseOf(b.a.ctx)
	switch {
	case errors.Is(err, message.ErrClientGone), err != io.EOF && cause == message.ErrClientGone:
		seen.End = "client_gone"
		return judge.Outcome{Kind: judge.Canceled}
	case err != io.EOF && cause == message.ErrDraining:
		seen.End = "drain_timeout"
		return judge.Outcome{Kind: judge.Canceled}
	case b.foreign():
		seen.End = "broken"
		return b.noteForeign()
	case b.against != judge.Canceled && err == io.EOF:
		if b.failedInside() {
			seen.End = "hidden_failure"
		}
		o := b.showing(nil)
		o.Uncompared = true
		return o
	case err == errLeaves:
		seen.End = "broken"
		return judge.Outcome{Kind: judge.Canceled}
	case b.failedInside():
		seen.End = "hidden_failure"
		b.r.Journal.FailedInside(b.r.In, b.r.Pool, b.a.Trip.Worker().ID(), b.reply.FailedCode())
		if b.aborts() {
			return judge.Outcome{Kind: judge.Leaving, Err: "gives up what it accepted"}
		}
		return judge.Outcome{Kind: judge.Failed, Err: errFailedInside.Error()}
	case err != io.EOF:
		seen.End = "broken"
		words := InWords(err)
		if b.a.given.Load() != 0 {
			words = errDown.Error()
		} else {
			b.r.LostAt(b.a.Trip.Worker(), b.a.Trip.Sent(), time.Now())
		}
		b.r.Journal.BrokeOff(b.r.In, b.r.Pool, b.a.Trip.Worker().ID(), words)
		return judge.Outcome{Kind: judge.Broken, Err: words, Stalled: errors.Is(err, upstream.ErrStalled)}
	}
	return signOf(b.r, b.resp, nil)
}

// showing returns the outcome of an answer that shows something against its worker.
func (b *body) showing(text []byte) judge.Outcome {
	o := signOf(b.r, b.resp, text)
	if o.Kind != b.against { // its status is good, and the failure stands inside
		o = judge.Outcome{Kind: b.against, Err: "reported a failure inside its answer"}
		switch b.against {
		case judge.Leaving:
			o.Err = "gives up what it accepts"
		case judge.Denied:
			o.Err = errFormless
		}
	}
	o.Excused = b.excused
	return o
}
