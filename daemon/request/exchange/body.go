package exchange

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/tokens"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// smallBody bounds the answers of stated length that are read whole before the client gets its head. They take one
// write, and the router can still replace a worker that breaks off in the answer or reports a failure in it.
const smallBody = 256 << 10

// maxReply bounds what is kept of an answer for the index: 1 MiB is some 250,000 generated tokens.
const maxReply = 1 << 20

var replies = sync.Pool{New: func() any { return prompt.NewReply(prompt.Other, false, maxReply) }}

// errFailedInside is the end of a stream in which the worker reported a failure.
var errFailedInside = errors.New("the worker reported a failure inside its answer")

// body is the answer of an attempt: what it shows about its worker, and what the router learns from it. stream.go adds
// what a stream needs. finish runs once, whichever way the answer ends.
type body struct {
	r       *admission.Request
	a       *attempt
	tries   *attempts     // of the request; not used once the client gets the answer
	reply   *prompt.Reply // nil: nothing is learnt from it
	habit   *epoch.Habit  // of the worker's ids; nil as reply is, or if the worker has left
	events  bool          // server-sent events
	ok      bool          // the status is a success
	bound   bool          // its id has been bound to the worker
	first   bool          // its first output has come
	served  bool          // the client has the whole answer
	homed   bool          // the request followed a session, a response or a job to the worker
	excused bool          // another worker failed the request in the same way
	against judge.Kind    // what it shows against its worker, although the client gets it; Canceled = nothing
	page    page          // what was read of a stream before its first output
	once    sync.Once
	came    time.Duration // after the arrival all of it had come; 0 for a stream
	edited  *edited       // reads the answer as the client gets it; nil = as the worker sent it
	jobs    *jobReader    // reads which jobs the answer names; nil = it names none
}

// start makes b the answer of an attempt whose response has its head.
func (b *body) start(r *admission.Request, a *attempt, tries *attempts) {
	b.r = r
	b.a = a
	b.tries = tries
	b.ok = a.resp.Status < 300
	plain := !message.Coded(a.resp.Header)
	b.events = plain && message.IsEvents(a.resp.Header.Get("Content-Type"))
	if b.ok && b.says(plain) {
		b.startReply()
	}
	if plain {
		b.edit()
	}
	if b.ok {
		b.startJob()
	}
}

// edit sets how the client gets an answer that is not compressed.
func (b *body) edit() {
	r := b.r
	if lesson := b.tries.lesson; b.ok && lesson != nil {
		b.edited = &edited{Reader: lesson.Strip(b.a.resp, b.events), teaches: true}
	}
	if r.Alias != nil {
		b.edited = b.with(names.NewReader(b.source(), r.Alias.Name, b.events))
	}
	if s := r.In.Seen.Split; s != nil && s.CachedKnown && b.ok {
		n := pair.Counts{Cached: s.Cached, Made: s.Made, Input: s.Input}
		b.edited = b.with(pair.NewReader(b.source(), r.Read.Req.Kind, n, b.events))
	}
	if admission.HasRoles(r) && (b.events || b.isJSON()) {
		b.edited = b.with(pair.Secret(b.source(), b.events))
	}
	if b.events && r.Read.Asks && b.reply != nil {
		b.edited = b.with(tokens.WithoutUsage(b.source(), b.reply))
	}
}

// startReply has the answer read. Of a kind that is not known only its usage is.
func (b *body) startReply() {
	b.reply = replies.Get().(*prompt.Reply)
	b.reply.Reset(b.r.Read.Req.Kind, b.events, maxReply)
	if b.r.Understood() {
		b.expect()
	} else {
		b.reply.Skim()
	}
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
func (b *body) isJSON() bool { return strings.Contains(b.a.resp.Header.Get("Content-Type"), "json") }

// read reads the next piece of the answer, in the form that the client gets.
func (b *body) read(p []byte) (int, error) {
	if b.edited != nil {
		return b.edited.Read(p)
	}
	return b.a.resp.Read(p)
}

// edited reads an answer in another form than the worker sent it in.
type edited struct {
	io.Reader
	teaches bool // the form is without the token ids that the answer teaches
}

// source returns what the answer is read from.
func (b *body) source() io.Reader {
	if b.edited != nil {
		return b.edited.Reader
	}
	return b.a.resp
}

// with returns how the answer is read by one more reader.
func (b *body) with(r io.Reader) *edited {
	return &edited{Reader: r, teaches: b.edited != nil && b.edited.teaches}
}

// readRoom is read into the memory of a room.
func (b *body) readRoom(room upstream.Room) (int, error) {
	if b.edited != nil {
		return b.read(room.Take())
	}
	return b.a.resp.ReadRoom(room)
}

// length returns the length of the answer that the client gets, -1 if it is not known.
func (b *body) length() int64 {
	if b.edited != nil {
		return -1
	}
	return b.a.resp.Length
}

// maxTaught bounds an answer of stated length that teaches and is read whole. Those of the largest bodies that may
// teach have some 2 MiB of ids.
const maxTaught = 8 << 20

// small reports whether the answer is read whole.
func (b *body) small() bool {
	most := int64(smallBody)
	if b.edited != nil && b.edited.teaches {
		most = maxTaught
	}
	return !b.events && b.a.resp.Length >= 0 && b.a.resp.Length <= most
}

// whole reads a small answer to its end.
func (b *body) whole() ([]byte, *failure) {
	if b.edited != nil {
		text, err := io.ReadAll(b.edited)
		if err != nil {
			return nil, b.discardBroken(err)
		}
		return text, nil
	}
	length := b.a.resp.Length
	text := make([]byte, length+1)
	_, err := io.ReadFull(b.a.resp, text[:length])
	if err == nil {
		_, err = b.a.resp.Read(text[length:]) // its end
		if err == io.EOF {
			err = nil
		}
	}
	if err != nil {
		return nil, b.discardBroken(err)
	}
	return text[:length], nil
}

// readWhole gives the reply an answer that came whole, and reports whether the answer reports a failure inside.
func (b *body) readWhole(text []byte) (failed bool) {
	if b.reply == nil {
		return false
	}
	b.reply.Body(text)
	return b.reply.Failed() && !b.rejects()
}

// keepWhole records an answer that came whole and goes to the client.
func (b *body) keepWhole(text []byte) {
	if b.reply != nil {
		b.bindResponse()
	}
	b.bindJobs(text)
	b.came = b.noteFirstByte().Sub(b.r.Arrived)
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
		b.r.Pool.Sessions.Bind(b.r.In.Stored(id), b.a.trip.Worker().ID(), time.Now())
		admission.KeepModel(b.r, id)
	}
}

// startJob prepares for an answer that may name jobs, and ends the binding of a job that was deleted.
func (b *body) startJob() {
	in, e := b.r.In, &b.r.In.Endpoint
	if in.Method == http.MethodDelete && e.Role == message.Worker && message.EndsIn(e.Path, e.ID) {
		b.r.Pool.Sessions.Close(in.Stored(e.ID), time.Now())
		if e.Job && in.Caller.Name != "" {
			b.r.Pool.Sessions.Close(message.Owned(e.ID, ""), time.Now())
		}
		return
	}
	if (e.Creates || e.Job) && !message.Coded(b.a.resp.Header) && b.isJSON() {
		b.jobs = new(jobReader)
		b.homed = b.tries.choice.Binding().Worker != ""
	}
}

// bindJobs binds the jobs that the answer names to its worker, as far as it has come. A piece must be read before the
// client has it: the client may ask for the job at once.
func (b *body) bindJobs(p []byte) {
	if b.jobs == nil || len(p) == 0 {
		return
	}
	in, at, now := b.r.In, b.a.trip.Worker().ID(), time.Now()
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
		b.a.trip.FirstByte(now)
		seen := &b.r.In.Seen
		seen.At = now
		seen.FirstByte = now.Sub(b.r.Arrived)
		seen.Stream = b.events
		seen.Worker = b.a.trip.Worker().ID()
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

// discardBroken ends an attempt whose answer broke off before the client saw any of it.
func (b *body) discardBroken(err error) *failure {
	f, o := b.a.diagnose(err)
	return b.discard(o, f)
}

// discard ends an attempt whose answer does not reach the client. It reports the outcome to the route and returns f.
func (b *body) discard(o judge.Outcome, f *failure) *failure {
	b.once.Do(func() {}) // finish has nothing to do any more
	b.tries.settle(&b.a.trip, &o)
	b.a.endTrip(&o, route.End{At: time.Now()})
	b.a.close()
	b.giveBack()
	return f
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

// expect has the reply compare the ids of the answer with the request's, by the worker's habit.
func (b *body) expect() {
	b.habit = b.r.Pool.Clients.Habit(b.a.trip.Worker().URL(), b.r.Read.Req.Kind, b.events)
	b.reply.Expect(b.habit.Mark(b.r.ID, b.a.resp.FirstUse(), b.tries.mistaken))
}

// foreign reports whether an id has shown that the answer, or a part of a stream, belongs to another request.
func (b *body) foreign() bool { return b.reply != nil && b.reply.Foreign() }

// discardForeign ends an attempt whose answer belongs to another request. That is nobody's answer any more.
func (b *body) discardForeign() *failure {
	o := b.noteForeign()
	b.tries.mistaken = true
	return b.discard(o, &failure{reason: journal.Foreign, fault: message.FaultUpstream, grade: route.GradeSilent})
}

// noteForeign counts and logs an answer that belongs to another request. Its connection is out of step, and others of
// that worker may be: none serves another request.
func (b *body) noteForeign() judge.Outcome {
	w := b.a.trip.Worker()
	b.habit.Refused(b.r.ID, b.a.resp.FirstUse())
	b.a.resp.Reject()
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
