package attempt

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// judge returns why an answer that came whole must not reach the client, or nil.
func (d draft) judge(text []byte) *Failure {
	if f := d.unaskable(text); f != nil {
		return f
	}
	if f := d.unloaded(text); f != nil {
		return f
	}
	if f := d.outgrown(text); f != nil {
		return f
	}
	if f := d.outgrewModel(text); f != nil {
		return f
	}
	failed := d.readWhole(text)
	if d.foreign() {
		return d.discardForeign()
	}
	if f := d.weigh(text); f != nil {
		return f
	}
	if failed {
		if f := d.weighHidden(text); f != nil {
			return f
		}
	}
	d.keepWhole(text)
	return nil
}

// unloaded ends the attempt of a worker that has lost the request's adapter, by a restart or another hand. It loads the
// adapter again, once. Nothing speaks against the worker.
func (d draft) unloaded(text []byte) *Failure {
	if d.resp.Status != http.StatusNotFound || d.r.Pool.Loader == nil || d.h.reloads || d.r.Consumed() ||
		d.r.In.Endpoint.Adapters || !d.r.Understood() || bareRefusals[string(text)] ||
		!d.r.Pool.Workers.LoseAdapter(d.a.Trip.Worker(), d.r.Read.Req.Model) {
		return nil
	}
	d.h.reloads = true
	return d.discard(judge.Outcome{Kind: judge.Canceled},
		&Failure{Reason: journal.Unloaded, Fault: message.FaultUpstream, Grade: route.GradeUnseen})
}

// weigh decides on an answer whose status, or text if it came whole, shows something against its worker. It returns nil
// if the client gets the answer. Else another worker is asked, and the attempt has ended.
func (d draft) weigh(text []byte) *Failure {
	o := signOf(d.r, d.resp, text)
	if o.Kind == judge.Answered && text != nil && d.formless(text, true) {
		o = judge.Outcome{Kind: judge.Denied, Err: errFormless}
	}
	return d.decide(o, text)
}

// decide is weigh for what was found against the worker.
func (d draft) decide(o judge.Outcome, text []byte) *Failure {
	if o.Kind == judge.Answered {
		return nil
	}
	d.ok = false
	if f := d.unfilled(o.Kind); f != nil {
		return f
	}
	if o.Kind == judge.Busy {
		if f := d.heldBack(text); f != nil {
			return f
		}
	}
	d.against = o.Kind
	f := failureOf(&o)
	if o.Kind == judge.Busy {
		f.Fault = message.Asked(f.Fault, d.resp.Header)
	}
	if o.Kind == judge.Denied && d.deniesKey() {
		f = &Failure{Reason: journal.Key, Fault: message.FaultWorkerKey, Grade: route.GradeRefused}
		d.r.Pool.Workers.RenewList(d.a.Trip.Worker()) // whether it is refused too shows whether the pool can serve
		d.r.Journal.KeyRefused(d.r.In, d.r.Pool, d.a.Trip.Worker(), d.resp.Status)
	}
	if d.lacks() {
		d.r.Pool.Workers.RenewList(d.a.Trip.Worker())
		o.OfModel = bytes.Contains(text, []byte(d.r.Read.Req.Model))
	}
	falls := d.unserved(o.Kind, text)
	if f.Reason == journal.Key || !d.r.MayFall(falls, d.h.choice.Binding()) {
		falls = 0
	}
	switch {
	case d.h.isRepeated(d.a.Trip.Worker(), o.Kind):
		d.excused = true
		if f.Reason != journal.Key {
			return nil
		}
	case !d.asksElsewhere(o.Kind, f, falls == 0):
		if f.Reason != journal.Key && falls == 0 {
			return nil
		}
		f.Grade, f.Falls = route.GradeFinal, falls
	}
	if f.Reason != journal.Key && d.resp.Status >= 400 {
		f.Own = d.ownError(text)
	}
	o.Excused = d.excused
	return d.discard(o, f)
}

// unaskable ends an attempt whose worker refuses to be asked for the usage, or to be told of other workers' KV. It is
// asked again without, and no more.
func (d draft) unaskable(text []byte) *Failure {
	status := d.resp.Status
	has := func(name string) bool { return bytes.Contains(text, []byte(name)) }
	switch {
	case status != http.StatusBadRequest && status != http.StatusUnprocessableEntity:
		return nil
	case d.a.Trip.Hint() != nil && has(pair.HintField):
		d.a.Trip.NoteUnhinted()
	case d.r.Read.Asks && (has("stream_options") || has("include_usage")):
		d.r.Pool.Clients.Mute(d.a.Trip.Worker().URL())
	default:
		return nil
	}
	return d.discard(judge.Outcome{Kind: judge.Answered, Rejected: true},
		&Failure{Reason: journal.Usage, Fault: message.FaultUpstream, Grade: route.GradeUnseen})
}

// pausedWords are those of vLLM 0.33 for what comes in a pause by mode abort or wait: a 503, or an error event
// (v1/engine/core.py, _reject_add_while_paused). Others before it hold such requests.
const pausedWords = "Generation is paused. Please retry after it resumes."

// askPaused is after how long a paused worker is asked again, where no other one is left.
const askPaused = 250 * time.Millisecond

// heldBack ends the attempt of a paused worker that refuses the request, which has it try again until the worker goes
// on, or header_timeout is over. Nothing speaks against the worker.
func (d draft) heldBack(text []byte) *Failure {
	if d.r.Consumed() || !bytes.Contains(text, []byte(pausedWords)) || time.Since(d.r.Arrived) > d.r.Pool.HeaderTimeout {
		return nil
	}
	d.r.Pool.Workers.Paused(d.a.Trip.Worker().Endpoint(), time.Now()) // whoever has sent the call
	if d.h.choice.Left() == 0 {
		select {
		case <-time.After(askPaused):
		case <-d.a.ctx.Done():
		}
	}
	d.h.choice.NotHad()
	return d.discard(judge.Outcome{Kind: judge.Canceled},
		&Failure{Reason: journal.Busy, Fault: message.FaultNoWorker, Grade: route.GradeRefused, paid: true})
}

// unfilled ends the attempt of a worker that was told where the KV of the prompt is, and fails: by default vLLM does so
// if the KV is gone, as from a prefiller that has restarted. Nothing speaks against the worker, and it gets the whole
// prompt. It returns nil if the worker was not told, or does something else than fail.
func (d draft) unfilled(k judge.Kind) *Failure {
	if d.a.Prompt == route.Alone || d.a.Faulty || k != judge.Failed {
		return nil
	}
	return d.discard(judge.Outcome{Kind: judge.Canceled},
		&Failure{Reason: journal.Unfilled, Fault: message.FaultUpstream, Grade: route.GradeUnseen})
}

// pausedWait bounds the wait for a worker's word that it is paused, while the client waits.
const pausedWait = 500 * time.Millisecond

// rested reports whether a worker that has aborted an answer is paused or asleep, or has been since it got the request.
// The worker is asked, as a trainer may have paused it without the router, or once more.
func rested(ctx context.Context, r *admission.Request, t *route.Trip) bool {
	return isPaused(ctx, r, t) || t.Rested()
}

// IsHeld implements upstream.Holding: a pause of the worker holds the answer up, or has done so since its last byte.
func (a *Attempt) IsHeld() bool { return a.Trip.Rests() || isPaused(a.ctx, a.answer.r, &a.Trip) }

// isPaused asks a worker whether it is paused.
func isPaused(ctx context.Context, r *admission.Request, t *route.Trip) bool {
	var said struct {
		Is bool `json:"is_paused"`
	}
	r.Ask(ctx, pausedWait, t.Worker().URL(), upstream.Request{Method: http.MethodGet, Path: "/is_paused"}, &said)
	if said.Is {
		r.Pool.Workers.Paused(t.Worker().Endpoint(), time.Now())
	}
	return said.Is
}

// failureOf returns the failure of an attempt that ends for that sign.
func failureOf(o *judge.Outcome) *Failure {
	switch {
	case o.Kind == judge.Busy:
		return &Failure{Reason: journal.Busy, Fault: message.FaultNoWorker, Grade: route.GradeRefused}
	case o.Kind == judge.Denied:
		return &Failure{Reason: journal.Denied, Fault: message.FaultUpstream, Grade: route.GradeRefused}
	case o.Err == errEngineDead:
		return &Failure{Reason: journal.Dying, Fault: message.FaultUpstream}
	case o.Kind == judge.Dying:
		return &Failure{Reason: journal.Hidden, Fault: message.FaultHidden}
	}
	return &Failure{Reason: journal.Status500, Fault: message.FaultUpstream}
}

// deniesKey reports whether the worker refuses the key that this router sends it. That is no answer to the client.
func (d draft) deniesKey() bool {
	status := d.resp.Status
	return d.r.Pool.Key != "" && (status == http.StatusUnauthorized || status == http.StatusForbidden &&
		!d.r.In.Socket) // so uvicorn refuses a WebSocket for which there is no path
}

// asksElsewhere reports whether another worker is asked because of that sign, and pays for it:
//
//   - always if the worker is full and another one is not, if it dies, or refuses this router's own key;
//   - for a refusal, if this worker has accepted nothing of the kind of late, so that the fault may be its own, or if
//     it lacks what its list has;
//   - for a failure, once, if this worker fails far more often than the others.
//
// waits: if nobody else is there yet, the request may wait for a worker that has just been started.
func (d draft) asksElsewhere(k judge.Kind, f *Failure, waits bool) bool {
	if d.r.Consumed() || d.r.In.Endpoint.Adapters && !d.lacks() {
		return false
	}
	switch {
	case k == judge.Busy && !d.a.Trip.Elsewhere(time.Now()): // the others have said that they are full, too
		f.paid = false
	case k == judge.Busy || k == judge.Dying:
		f.paid = d.h.rule.Further(d.h.choice.Left(), d.h.choice.MayWiden(time.Now())) && d.r.PayRetry()
	case f.Reason == journal.Key:
		f.paid = d.h.others(waits) && d.r.PayRetry()
	case k == judge.Denied:
		f.paid = d.h.others(waits) && d.differs() && d.r.PayRetry()
	default:
		f.paid = d.blames(d.a.Trip.Worker(), waits)
	}
	return f.paid
}

// unserved returns what the last worker says of its model with such an answer, 0 if nothing: that it is full, or that
// it does not have the model any more.
func (d draft) unserved(k judge.Kind, text []byte) names.Reason {
	switch {
	case k == judge.Busy:
		return names.Full
	case d.resp.Status == http.StatusNotFound && d.r.Understood() && !bareRefusals[string(text)]:
		return names.Down
	}
	return 0
}

// lacks reports whether the worker answers that it does not have what the request is about: a model that it lists, or
// the adapter that is to be unloaded.
func (d draft) lacks() bool {
	if d.resp.Status != http.StatusNotFound {
		return false
	}
	if d.r.In.Endpoint.Adapters {
		return d.r.In.Endpoint.Unloads()
	}
	model := d.r.Read.Req.Model
	return model != "" && d.r.Understood() && d.r.Responses() == [2]string{} &&
		d.r.Pool.Workers.Lists(d.a.Trip.Worker(), model)
}

// differs reports whether another worker may accept what this one refuses. A worker that lacks one adapter is not at
// fault: that is no sign against it.
func (d draft) differs() bool {
	if d.r.In.Endpoint.Adapters {
		d.excused = true
		return true
	}
	if d.a.Trip.Doubtful(time.Now()) {
		return true
	}
	d.excused = d.lacks()
	return d.excused
}

// blames reports whether a failed answer is blamed on the worker: once, if another worker can be tried and this one
// fails far more often than the others.
func (d draft) blames(on *worker.Worker, waits bool) bool {
	if d.h.blamed || !d.h.others(waits) {
		return false
	}
	d.h.blamed = d.r.Pool.Workers.FailsAlone(on) && d.r.Pool.Workers.MayRetry(time.Now())
	return d.h.blamed
}

// weighHidden decides on an answer that reports the worker's failure inside a 200 (see prompt.Reply.Failed). It returns
// nil if the client gets the answer: another worker has failed the request in the same way, or the worker has said in
// words what is wrong and nobody else can be asked. text is what came of the answer.
func (d draft) weighHidden(text []byte) *Failure {
	if f := d.heldBack(text); f != nil {
		return f
	}
	if !d.r.Consumed() && d.aborts() && rested(d.a.ctx, d.r, &d.a.Trip) {
		// a pause has ended it, which shows nothing: it waits, and the same worker may have it again
		d.h.choice.NotHad()
		return d.discard(judge.Outcome{Kind: judge.Canceled},
			&Failure{Reason: journal.Hidden, Fault: message.FaultHidden, Grade: route.GradeRefused, paid: true})
	}
	d.against = judge.Failed
	if d.aborts() {
		d.against = judge.Leaving
	} else if f := d.unfilled(judge.Failed); f != nil {
		return f
	}
	o := d.showing(text)
	if d.h.isRepeated(d.a.Trip.Worker(), o.Kind) {
		d.excused = true
		return nil
	}
	f := &Failure{Reason: journal.Hidden, Fault: message.FaultHidden}
	switch {
	case !d.r.Consumed() && d.h.rule.Further(d.h.choice.Left(), d.h.choice.MayWiden(time.Now())) &&
		d.r.PayRetry():
		f.paid = true
		if d.reply.ReportedError() {
			f.Own = d.ownError(bytes.Clone(text))
		}
	case d.reply.ReportedError():
		return nil
	default:
		f.Grade = route.GradeFinal
	}
	return d.discard(o, f)
}

// ownError returns the worker's error as the client would get it, if it came whole; else nil. A door has errors of its
// own form.
func (d draft) ownError(text []byte) *OwnError {
	if text == nil || d.r.Entry.Door != nil {
		return nil
	}
	status := d.resp.Status
	return &OwnError{Worker: d.a.Trip.Worker().ID(), Outbound: message.Outbound{Status: status,
		Header: d.r.ClientHeader(d.resp.Header), Body: d.wordRefusal(status, text)}}
}

// bareRefusals are the bodies of a worker that has no such path or method (Starlette's own). The SDKs of clients find
// no message in them.
var bareRefusals = map[string]bool{`{"detail":"Not Found"}`: true, `{"detail":"Method Not Allowed"}`: true}

// wordRefusal puts a bare refusal of a worker into the endpoint's shape, with words. Every other body stays as it is.
func (d draft) wordRefusal(status int, text []byte) []byte {
	if status != http.StatusNotFound && status != http.StatusMethodNotAllowed || d.r.Entry.Door != nil ||
		!bareRefusals[string(text)] {
		return text
	}
	f := message.FaultUnknownURL
	f.Message = "the worker serves no " + gate.Cut(d.r.In.Method+" "+d.r.In.Path)
	return f.InJSON(d.r.Shape())
}
