package attempt

import (
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// maxReply bounds what is kept of an answer for the index: 1 MiB is some 250,000 generated tokens.
const maxReply = 1 << 20

var replies = sync.Pool{New: func() any { return prompt.NewReply(prompt.Other, false, maxReply) }}

// errFailedInside is the end of a stream in which the worker reported a failure.
var errFailedInside = errors.New("the worker reported a failure inside its answer")

// body is the answer of an attempt: what it shows about its worker, and what the router learns from it. stream.go adds
// what a stream needs. finish runs once, whichever way the answer ends.
type body struct {
	r       *admission.Request
	a       *Attempt
	resp    *upstream.Response // nil before its head
	reply   *prompt.Reply      // nil: nothing is learnt from it
	habit   *epoch.Habit       // of the worker's ids; nil as reply is, or if the worker has left
	events  bool               // server-sent events
	ok      bool               // the status is a success
	bound   bool               // its id has been bound to the worker
	first   bool               // its first output has come
	served  bool               // the client has the whole answer
	homed   bool               // the request followed a session, a response or a job to the worker
	hands   bool               // it ends with ErrBroken where it breaks off
	excused bool               // another worker failed the request in the same way
	against judge.Kind         // what it shows against its worker, although the client gets it; Canceled = nothing
	once    sync.Once
	page    page          // what was read of a stream before its first output
	broke   *breakage     // nil = it has not broken off
	came    time.Duration // after the arrival all of it had come; 0 for a stream
	edited  *edited       // reads the answer as the client gets it; nil = as the worker sent it
	jobs    *jobReader    // reads which jobs the answer names; nil = it names none
}

// breakage is how an answer broke off, or what else follows a stream. Few do, so that it is apart.
type breakage struct {
	why  error
	cut  []byte         // the worker's error event, which the client has not got
	lost []byte         // what came from the event on that reports a failure
	left *judge.Outcome // of its trip, which has ended before the answer has; nil = it has not
	tail []byte         // an error event, or a comment, that the client is still to read
}

// says reports whether the answer may say what it has used, or how far a job is. plain: it is not compressed. A sound
// or a film does not.
func (b *body) says(plain bool) bool {
	r := b.r
	switch {
	case r.Understood():
		return true
	case !plain:
		return false
	case r.Read.Computes:
		return !r.In.Endpoint.IsMedia() || b.events || b.isJSON()
	}
	return r.Kept.Jobs.Follows(r.In)
}

// isJSON reports whether the answer is JSON.
func (b *body) isJSON() bool { return strings.Contains(b.resp.Header.Get("Content-Type"), "json") }

// read reads the next piece of the answer, in the form that the client gets.
func (b *body) read(p []byte) (int, error) {
	if b.edited != nil {
		return b.edited.Read(p)
	}
	return b.resp.Read(p)
}

// edited reads an answer in another form than the worker sent it in.
type edited struct {
	io.Reader
	teaches bool               // the form is without the token ids that the answer teaches
	counts  func() pair.Counts // in place of the worker's; nil = those stay
}

// source returns what the answer is read from.
func (b *body) source() io.Reader {
	if b.edited != nil {
		return b.edited.Reader
	}
	return b.resp
}

// with returns how the answer is read by one more reader.
func (b *body) with(r io.Reader) *edited {
	e := edited{Reader: r}
	if b.edited != nil {
		e.teaches, e.counts = b.edited.teaches, b.edited.counts
	}
	return &e
}

// readRoom is read into the memory of a room.
func (b *body) readRoom(room upstream.Room) (int, error) {
	if b.edited != nil {
		return b.read(room.Take())
	}
	return b.resp.ReadRoom(room)
}

// length returns the length of the answer that the client gets, -1 if it is not known.
func (b *body) length() int64 {
	if b.edited != nil {
		return -1
	}
	return b.resp.Length
}

// learn gives the reply a piece of a stream.
func (b *body) learn(p []byte) {
	b.bindJobs(p)
	if b.reply == nil || len(p) == 0 {
		return
	}
	b.reply.Feed(p)
	b.r.Limits.Grow(b.r.Pool, b.reply)
	b.bindResponse()
}

// bindResponse binds a response's id to its worker: only that worker has the state, and requests that refer to the
// response must go there.
func (b *body) bindResponse() {
	if b.bound || b.r.Read.Req.Kind != prompt.Responses {
		return
	}
	if id := b.reply.ID(); id != "" {
		b.bound = true
		b.r.Pool.Sessions.Bind(b.r.In.Stored(id), b.a.Trip.Worker().ID(), time.Now())
		admission.KeepModel(b.r, id)
	}
}

// bindJobs binds the jobs that the answer names to its worker, as far as it has come. A piece must be read before the
// client has it: the client may ask for the job at once.
func (b *body) bindJobs(p []byte) {
	if b.jobs == nil || len(p) == 0 {
		return
	}
	in, at, now := b.r.In, b.a.Trip.Worker().ID(), time.Now()
	keyed := in.Caller.Name != ""
	for i, id := range b.jobs.read(p) {
		switch {
		case id == "":
		case i == 0 && (!in.Endpoint.Creates || id == in.Endpoint.ID): // the client has it already
		case i > 0 && keyed && !b.homed: // the job may be another key's, and its files too
		default:
			b.r.Pool.Sessions.Bind(in.Stored(id), at, now)
			if keyed {
				b.r.Pool.Sessions.Bind(message.Owned(id, in.Caller.Name), at, now)
			}
		}
	}
}

// noteFirstOutput is noteFirstByte for an answer whose first bytes may be no output.
func (b *body) noteFirstOutput() {
	if !b.first && (b.reply == nil || b.reply.Output()) {
		b.noteFirstByte()
	}
}

// noteFirstByte records and counts the first byte of an answer that goes to the client.
func (b *body) noteFirstByte() (now time.Time) {
	b.a.stopTimer()
	now = time.Now()
	b.first = true
	if b.ok {
		b.a.Trip.FirstByte(now)
		seen := &b.r.In.Seen
		seen.At = now
		seen.FirstByte = now.Sub(b.r.Arrived)
		seen.Stream = b.events
		seen.Worker = b.a.Trip.Worker().ID()
		b.r.Journal.Meter.FirstByte(seen)
	}
	return now
}

// rejects reports whether the error inside a 200 is about the request. Old vLLM answers so to embeddings of a model
// without them.
func (b *body) rejects() bool {
	code := b.reply.FailedCode()
	return code >= 400 && code < 500
}

// giveBack returns the pooled parts.
func (b *body) giveBack() {
	if b.reply != nil {
		b.reply.Expect(prompt.Mark{}) // that holds the request's id, which is part of its header
		replies.Put(b.reply)
		b.reply = nil
	}
	b.page.release()
}

// errForeign is the end of an answer that belongs to another request, in the words of the worker's record.
const errForeign = "gave the answer to another request"

// foreign reports whether an id has shown that the answer, or a part of a stream, belongs to another request.
func (b *body) foreign() bool { return b.reply != nil && b.reply.Foreign() }

// noteForeign counts and logs an answer that belongs to another request. Its connection is out of step, and others of
// that worker may be: none serves another request.
func (b *body) noteForeign() judge.Outcome {
	w := b.a.Trip.Worker()
	b.habit.Refused(b.r.ID, b.resp.FirstUse())
	b.resp.Reject()
	if client := b.r.Pool.Clients.Get(w.URL()); client != nil {
		client.Retire()
	}
	b.r.Journal.Foreign(b.r.In, b.r.Pool, w)
	return judge.Outcome{Kind: judge.Broken, Err: errForeign}
}

// learnHabit learns from an answer that came whole where the worker's ids have the request's.
func (b *body) learnHabit(whole bool) {
	if b.reply != nil && whole && !b.reply.Failed() {
		owner, frame := b.reply.Owner()
		b.habit.Learn(b.r.ID, owner, frame)
	}
}
