package attempt

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/tokens"
)

// smallBody bounds the answers of stated length that are read whole before the client gets its head. They take one
// write, and the router can still replace a worker that breaks off in the answer or reports a failure in it.
const smallBody = 256 << 10

// maxTaught bounds an answer of stated length that teaches and is read whole. Those of the largest bodies that may
// teach have some 2 MiB of ids.
const maxTaught = 8 << 20

// errFormless is the outcome's error of a success that is no answer.
const errFormless = "answers with something that is no answer of an API"

// draft is an answer of which the client has nothing yet, so that another worker's may take its place.
type draft struct {
	*stream
	h *History // of the request
}

// start begins to read the answer of an attempt whose response has its head.
func (a *Attempt) start(h *History) draft {
	d := draft{stream: &a.answer, h: h}
	d.r, d.a, d.resp = h.req, a, &a.response
	d.ok = d.resp.Status < 300
	plain := !message.Coded(d.resp.Header)
	d.events = plain && message.IsEvents(d.resp.Header.Get("Content-Type"))
	if d.ok && d.says(plain) {
		d.startReply()
	}
	if plain {
		d.edit()
	}
	if d.ok {
		d.startJob()
	}
	return d
}

// edit sets how the client gets an answer that is not compressed.
func (d draft) edit() {
	r := d.r
	if lesson := d.h.lesson; d.ok && lesson != nil {
		d.edited = &edited{Reader: lesson.Strip(d.resp, d.events), teaches: true}
	}
	if r.Alias != nil {
		d.edited = d.with(names.NewReader(d.source(), r.Alias.Name, d.events))
	}
	if counts := d.h.Counts; d.ok && counts != nil {
		d.edited = d.with(pair.NewReader(d.source(), r.Read.Req.Kind, counts, d.events))
		d.edited.counts = counts
	}
	if r.Pool.Pairing != nil && r.Entry.Op != message.Prefilling && (d.events || d.isJSON()) {
		d.edited = d.with(pair.Secret(d.source(), d.events))
	}
	if d.events && r.Read.Asks && d.reply != nil {
		d.edited = d.with(tokens.WithoutUsage(d.source(), d.reply, r.Read.Req.IncludeUsage))
	}
}

// startReply has the answer read. Of a kind that is not known only its usage is.
func (d draft) startReply() {
	d.reply = replies.Get().(*prompt.Reply)
	d.reply.Reset(d.r.Read.Req.Kind, d.events, maxReply)
	if d.r.Understood() {
		d.expect()
	} else {
		d.reply.Skim()
	}
}

// expect has the reply compare the ids of the answer with the request's, by the worker's habit.
func (d draft) expect() {
	d.habit = d.r.Pool.Clients.Habit(d.a.Trip.Worker().URL(), d.r.Read.Req.Kind, d.events)
	d.reply.Expect(d.habit.Mark(d.r.ID, d.resp.FirstUse(), d.h.mistaken))
}

// startJob prepares for an answer that may name jobs, and ends the binding of a job that was deleted.
func (d draft) startJob() {
	in, e := d.r.In, &d.r.In.Endpoint
	if in.Method == http.MethodDelete && e.Role == message.Worker && message.EndsIn(e.Path, e.ID) {
		d.r.Pool.Sessions.Close(in.Stored(e.ID), time.Now())
		if e.Job && in.Caller.Name != "" {
			d.r.Pool.Sessions.Close(message.Owned(e.ID, ""), time.Now())
		}
		return
	}
	if (e.Creates || e.Job) && !message.Coded(d.resp.Header) && d.isJSON() {
		d.jobs = new(jobReader)
		d.homed = d.h.choice.Binding().Worker != ""
	}
}

// receive makes the client's answer, or returns why there is none. The attempt has ended then.
func (d draft) receive() *Failure {
	out := &d.a.out
	*out = message.Outbound{Status: d.resp.Status, Length: d.length()}
	if d.resp.Status == http.StatusSwitchingProtocols {
		if !d.a.stopTimer() {
			return d.discardBroken(errLate)
		}
		d.resp.SetChunkTimeout(always)
		d.noteFirstByte()
		out.Stream = d.stream
	} else if d.small() {
		text, f := d.whole()
		if f == nil {
			text = d.r.HideTarget(out.Status, text)
			f = d.judge(text)
		}
		if f != nil {
			return f
		}
		out.Body = d.wordRefusal(out.Status, text)
	} else {
		f := d.weigh(nil)
		if f == nil {
			f = d.awaitOutput()
		}
		if f != nil {
			return f
		}
		out.Stream = d.stream
	}
	d.accept(out)
	return nil
}

// always is a pause that no WebSocket makes: who waits for it on either side may be idle.
const always = 10 * 365 * 24 * time.Hour

// small reports whether the answer is read whole.
func (d draft) small() bool {
	most := int64(smallBody)
	if d.edited != nil && d.edited.teaches {
		most = maxTaught
	}
	return !d.events && d.resp.Length >= 0 && d.resp.Length <= most
}

// whole reads a small answer to its end.
func (d draft) whole() ([]byte, *Failure) {
	if d.edited != nil {
		text, err := io.ReadAll(d.edited)
		if err != nil {
			return nil, d.discardBroken(err)
		}
		return text, nil
	}
	length := d.resp.Length
	text := make([]byte, length+1)
	_, err := io.ReadFull(d.resp, text[:length])
	if err == nil {
		_, err = d.resp.Read(text[length:]) // its end
		if err == io.EOF {
			err = nil
		}
	}
	if err != nil {
		return nil, d.discardBroken(err)
	}
	return text[:length], nil
}

// readWhole gives the reply an answer that came whole, and reports whether the answer reports a failure inside.
func (d draft) readWhole(text []byte) (failed bool) {
	if d.reply == nil {
		return false
	}
	d.reply.Body(text)
	return d.reply.Failed() && !d.rejects()
}

// keepWhole records an answer that came whole and goes to the client.
func (d draft) keepWhole(text []byte) {
	if d.reply != nil {
		d.bindResponse()
	}
	d.bindJobs(text)
	d.came = d.noteFirstByte().Sub(d.r.Arrived)
}

// awaitOutput reads an answer until its first byte, and a stream that is understood until its first output. A worker
// that fails before that is replaced, and the client never knows. The head shows nothing, as vLLM sends it before the
// prefill, and the first event of a chat holds only the assistant's role.
func (d draft) awaitOutput() *Failure {
	understood := d.reply != nil && d.events && d.r.Understood()
	if understood {
		d.resp.SetChunkTimeout(d.r.Pool.HeaderTimeout) // the head of a stream comes before the prefill
	}
	for {
		n, err := d.read(d.page.room())
		if n > 0 {
			d.a.Trip.Flow(time.Now())
		}
		piece := d.page.grow(n)
		d.learn(piece)
		if d.foreign() {
			return d.discardForeign()
		}
		failed := d.fails(understood, err == io.EOF)
		if failed {
			if f := d.weighFailed(); f != nil {
				return f
			}
		}
		switch {
		case err == io.EOF && d.unfinished():
			return d.discardBroken(io.ErrUnexpectedEOF)
		case err == io.EOF:
			d.err = io.EOF
		case err != nil:
			return d.discardBroken(err)
		case understood && !failed && d.withholds(piece):
			continue // a ping or a comment keeps a connection alive through whatever stands before us: it must go on
		}
		d.resp.SetChunkTimeout(0)
		d.resp.AskBeforeTimeout(d.a)
		d.resp.Release()
		if !d.a.stopTimer() {
			return d.discardBroken(errLate)
		}
		d.a.waits.Store(forClient)
		d.noteFirstOutput()
		return nil
	}
}

// fails reports whether what came shows that it is no answer: a stream that is understood reports a failure, or what is
// no stream has no form of an answer.
func (d draft) fails(understood, ended bool) bool {
	if understood {
		return d.reply.Failed() && !d.rejects()
	}
	return d.formless(d.page.held, ended && len(d.page.held) == 0)
}

// weighFailed decides on an answer of which fails is true. nil = the client gets it.
func (d draft) weighFailed() *Failure {
	if !d.events {
		return d.decide(judge.Outcome{Kind: judge.Denied, Err: errFormless}, nil)
	}
	return d.weighHidden(d.page.held)
}

// withholds reports whether what came so far is held back: it is no output, and the piece that came last has no ping
// and is no comment.
func (d draft) withholds(piece []byte) bool {
	return !d.reply.Output() && !d.page.full() && !d.reply.Pinged() && !bytes.HasPrefix(piece, []byte(":"))
}

// formless reports whether a success that begins with this text is no answer to the request, such as {} or nothing.
// whole: this is all of it. A container behind SageMaker's door may answer in any form, and so may what is no text.
func (d draft) formless(text []byte, whole bool) bool {
	if d.reply == nil || d.events || !d.r.Understood() || !d.reply.Formless(text, whole) {
		return false
	}
	h := d.resp.Header
	kind := h.Get("Content-Type")
	isText := kind == "" || strings.Contains(kind, "json") || strings.HasPrefix(kind, "text/") || whole &&
		len(text) == 0
	return isText && !message.Coded(h) && prompt.KindOf(http.MethodPost, d.r.Target()) != prompt.Invocations
}

// accept makes the head of an answer that goes to the client, and records whose it is.
func (d draft) accept(out *message.Outbound) {
	seen, by := &d.r.In.Seen, d.a.Trip.Worker()
	seen.Stream = d.events
	seen.Worker = by.ID()
	seen.Matched = int32(d.a.Trip.Matched())
	seen.Passed = d.h.choice.PassedOn()
	if seen.Passed {
		seen.Reason = d.h.choice.Reason()
	}
	out.Header = d.r.ClientHeader(d.resp.Header)
	if d.against == judge.Canceled && d.ok {
		d.h.accepted()
	}
	if out.Status >= 300 && out.Status < 400 {
		message.StayHere(out.Header, by.URL())
	}
	if d.against == judge.Busy {
		out.ComeBackIn(message.Asked(message.FaultNoWorker, out.Header).Measured(d.r.Pool, time.Now()).Retry)
	}
}

// discardBroken ends an attempt whose answer broke off before the client saw any of it.
func (d draft) discardBroken(err error) *Failure {
	f, o := d.a.diagnose(err)
	return d.discard(o, f)
}

// discard ends an attempt whose answer does not reach the client. It reports the outcome to the route and returns f.
func (d draft) discard(o judge.Outcome, f *Failure) *Failure {
	d.once.Do(func() {}) // finish has nothing to do any more
	d.h.settle(&d.a.Trip, &o)
	d.a.endTrip(&o, route.End{At: time.Now()})
	d.a.close()
	d.giveBack()
	return f
}

// discardForeign ends an attempt whose answer belongs to another request. That is nobody's answer any more.
func (d draft) discardForeign() *Failure {
	o := d.noteForeign()
	d.h.mistaken = true
	return d.discard(o, &Failure{Reason: journal.Foreign, Fault: message.FaultUpstream, Grade: route.GradeSilent})
}
