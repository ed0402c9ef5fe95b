package exchange

import (
	"bytes"
	"net/http"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/names"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// weigher decides whether the client gets an answer that shows something against its worker, or another worker is
// asked.
type weigher struct {
	req   *admission.Request
	tries *attempts
}

// judge returns why an answer that came whole must not reach the client, or nil.
func (w weigher) judge(b *body, text []byte) *failure {
	if f := unaskable(b, text); f != nil {
		return f
	}
	if f := w.unloaded(b, text); f != nil {
		return f
	}
	if f := outgrown(b, w.tries, text); f != nil {
		return f
	}
	if f := outgrewModel(b, text); f != nil {
		return f
	}
	failed := b.readWhole(text)
	if b.foreign() {
		return b.discardForeign()
	}
	if f := w.weigh(b, text); f != nil {
		return f
	}
	if failed {
		if f := w.weighHidden(b, text); f != nil {
			return f
		}
	}
	b.keepWhole(text)
	return nil
}

// unloaded ends the attempt of a worker that has lost the request's adapter, by a restart or another hand. It loads the
// adapter again, once. Nothing speaks against the worker.
func (w weigher) unloaded(b *body, text []byte) *failure {
	if b.a.resp.Status != http.StatusNotFound || w.req.Pool.Loader == nil || w.tries.reloads || w.req.Consumed() ||
		w.req.In.Endpoint.Adapters || !w.req.Understood() || bareRefusals[string(text)] ||
		!w.req.Pool.Workers.LoseAdapter(b.a.trip.Worker(), w.req.Read.Req.Model) {
		return nil
	}
	w.tries.reloads = true
	return b.discard(judge.Outcome{Kind: judge.Canceled},
		&failure{reason: journal.Unloaded, fault: message.FaultUpstream, grade: route.GradeUnseen})
}

// weigh decides on an answer whose status, or text if it came whole, shows something against its worker. It returns nil
// if the client gets the answer. Else another worker is asked, and the attempt has ended.
func (w weigher) weigh(b *body, text []byte) *failure {
	o := signOf(w.req, b.a.resp, text)
	if o.Kind == judge.Answered && text != nil && b.formless(text, true) {
		o = judge.Outcome{Kind: judge.Denied, Err: errFormless}
	}
	return w.decide(b, o, text)
}

// decide is weigh for what was found against the worker.
func (w weigher) decide(b *body, o judge.Outcome, text []byte) *failure {
	if o.Kind == judge.Answered {
		return nil
	}
	b.ok = false
	if f := unfilled(b, o.Kind); f != nil {
		return f
	}
	b.against = o.Kind
	f := failureOf(&o)
	if o.Kind == judge.Busy {
		f.fault = message.Asked(f.fault, b.a.resp.Header)
	}
	if o.Kind == judge.Denied && w.deniesKey(b) {
		f = &failure{reason: journal.Key, fault: message.FaultWorkerKey, grade: route.GradeRefused}
		w.req.Journal.KeyRefused(w.req.In, w.req.Pool, b.a.trip.Worker(), b.a.resp.Status)
	}
	if w.lacks(b) {
		w.req.Pool.Workers.RenewList(b.a.trip.Worker())
		o.OfModel = bytes.Contains(text, []byte(w.req.Read.Req.Model))
	}
	switch {
	case w.tries.isRepeated(b.a.trip.Worker(), o.Kind):
		b.excused = true
		if f.reason != journal.Key {
			return nil
		}
	case !w.asksElsewhere(b, o.Kind, f):
		f.falls = w.unserved(b, o.Kind, text)
		if f.reason == journal.Key || !w.req.MayFall(f.falls, w.tries.choice.Binding()) {
			f.falls = 0
		}
		if f.reason != journal.Key && f.falls == 0 {
			return nil
		}
		f.grade = route.GradeFinal
	}
	if f.reason != journal.Key && b.a.resp.Status >= 400 {
		f.own = w.ownError(b, text)
	}
	o.Excused = b.excused
	return b.discard(o, f)
}

// unaskable ends an attempt whose worker refuses to be asked for the usage. It is asked again without, and no more.
func unaskable(b *body, text []byte) *failure {
	status, w := b.a.resp.Status, b.a.trip.Worker()
	if !b.r.Read.Asks || status != http.StatusBadRequest && status != http.StatusUnprocessableEntity ||
		!bytes.Contains(text, []byte("stream_options")) && !bytes.Contains(text, []byte("include_usage")) {
		return nil
	}
	b.r.Pool.Clients.Mute(w.URL())
	return b.discard(judge.Outcome{Kind: judge.Answered, Rejected: true},
		&failure{reason: journal.Usage, fault: message.FaultUpstream, grade: route.GradeUnseen})
}

// unfilled ends the attempt of a worker that was told where the KV of the prompt is, and fails: by default vLLM does so
// if the KV is gone, as from a prefiller that has restarted. Nothing speaks against the worker, and it gets the whole
// prompt. It returns nil if the worker was not told, or does something else than fail.
func unfilled(b *body, k judge.Kind) *failure {
	if !b.a.handed || b.a.faulty || k != judge.Failed {
		return nil
	}
	return b.discard(judge.Outcome{Kind: judge.Canceled},
		&failure{reason: journal.Unfilled, fault: message.FaultUpstream, grade: route.GradeUnseen})
}

// failureOf returns the failure of an attempt that ends for that sign.
func failureOf(o *judge.Outcome) *failure {
	switch {
	case o.Kind == judge.Busy:
		return &failure{reason: journal.Busy, fault: message.FaultNoWorker, grade: route.GradeRefused}
	case o.Kind == judge.Denied:
		return &failure{reason: journal.Denied, fault: message.FaultUpstream, grade: route.GradeRefused}
	case o.Err == errEngineDead:
		return &failure{reason: journal.Dying, fault: message.FaultUpstream}
	case o.Kind == judge.Dying:
		return &failure{reason: journal.Hidden, fault: message.FaultHidden}
	}
	return &failure{reason: journal.Status500, fault: message.FaultUpstream}
}

// deniesKey reports whether the worker refuses the key that this router sends it. That is no answer to the client.
func (w weigher) deniesKey(b *body) bool {
	status := b.a.resp.Status
	return w.req.Pool.Key != "" && (status == http.StatusUnauthorized || status == http.StatusForbidden)
}

// asksElsewhere reports whether another worker is asked because of that sign, and pays for it:
//
//   - always if the worker is full and another one is not, if it dies, or refuses this router's own key;
//   - for a refusal, if this worker has accepted nothing of the kind of late, so that the fault may be its own, or if
//     it lacks what its list has;
//   - for a failure, once, if this worker fails far more often than the others.
func (w weigher) asksElsewhere(b *body, k judge.Kind, f *failure) bool {
	if w.req.Consumed() || w.req.In.Endpoint.Adapters && !w.lacks(b) {
		return false
	}
	switch {
	case k == judge.Busy && !b.a.trip.Elsewhere(time.Now()): // the others have said that they are full, too
		f.paid = false
	case k == judge.Busy || k == judge.Dying:
		f.paid = w.tries.Further(w.tries.choice.Left(), w.tries.choice.MayWiden(time.Now())) && w.req.PayRetry()
	case f.reason == journal.Key:
		f.paid = w.tries.Others(w.tries.choice.Left()) && w.req.PayRetry()
	case k == judge.Denied:
		f.paid = w.tries.Others(w.tries.choice.Left()) && w.differs(b) && w.req.PayRetry()
	default:
		f.paid = w.blames(b.a.trip.Worker())
	}
	return f.paid
}

// unserved returns what the last worker says of its model with such an answer, 0 if nothing: that it is full, or that
// it does not have the model any more.
func (w weigher) unserved(b *body, k judge.Kind, text []byte) names.Reason {
	switch {
	case k == judge.Busy:
		return names.Full
	case b.a.resp.Status == http.StatusNotFound && w.req.Understood() && !bareRefusals[string(text)]:
		return names.Down
	}
	return 0
}

// lacks reports whether the worker answers that it does not have what the request is about: a model that it lists, or
// the adapter that is to be unloaded.
func (w weigher) lacks(b *body) bool {
	if b.a.resp.Status != http.StatusNotFound {
		return false
	}
	if w.req.In.Endpoint.Adapters {
		return w.req.In.Endpoint.Unloads()
	}
	model := w.req.Read.Req.Model
	return model != "" && w.req.Understood() && w.req.Responses() == [2]string{} &&
		w.req.Pool.Workers.Lists(b.a.trip.Worker(), model)
}

// differs reports whether another worker may accept what this one refuses. A worker that lacks one adapter is not at
// fault: that is no sign against it.
func (w weigher) differs(b *body) bool {
	if w.req.In.Endpoint.Adapters {
		b.excused = true
		return true
	}
	if b.a.trip.Doubtful(time.Now()) {
		return true
	}
	b.excused = w.lacks(b)
	return b.excused
}

// blames reports whether a failed answer is blamed on the worker: once, if another worker can be tried and this one
// fails far more often than the others.
func (w weigher) blames(on *worker.Worker) bool {
	if w.tries.blamed || !w.tries.Others(w.tries.choice.Left()) {
		return false
	}
	w.tries.blamed = w.req.Pool.Workers.FailsAlone(on) && w.req.Pool.Workers.MayRetry(time.Now())
	return w.tries.blamed
}

// weighHidden decides on an answer that reports the worker's failure inside a 200 (see prompt.Reply.Failed). It returns
// nil if the client gets the answer: another worker has failed the request in the same way, or the worker has said in
// words what is wrong and nobody else can be asked. text is what came of the answer.
func (w weigher) weighHidden(b *body, text []byte) *failure {
	b.against = judge.Failed
	if b.aborts() {
		b.against = judge.Leaving
	} else if f := unfilled(b, judge.Failed); f != nil {
		return f
	}
	o := b.showing(text)
	if w.tries.isRepeated(b.a.trip.Worker(), o.Kind) {
		b.excused = true
		return nil
	}
	f := &failure{reason: journal.Hidden, fault: message.FaultHidden}
	switch {
	case !w.req.Consumed() && w.tries.Further(w.tries.choice.Left(), w.tries.choice.MayWiden(time.Now())) &&
		w.req.PayRetry():
		f.paid = true
		if b.reply.ReportedError() {
			f.own = w.ownError(b, bytes.Clone(text))
		}
	case b.reply.ReportedError():
		return nil
	default:
		f.grade = route.GradeFinal
	}
	return b.discard(o, f)
}

// ownError returns the worker's error as the client would get it, if it came whole; else nil. A door has errors of its
// own form.
func (w weigher) ownError(b *body, text []byte) *ownError {
	if text == nil || w.req.Entry.Door != nil {
		return nil
	}
	status := b.a.resp.Status
	return &ownError{worker: b.a.trip.Worker().ID(), Outbound: message.Outbound{Status: status,
		Header: w.req.ClientHeader(b.a.resp.Header), Body: w.wordRefusal(status, text)}}
}

// bareRefusals are the bodies of a worker that has no such path or method (Starlette's own). The SDKs of clients find
// no message in them.
var bareRefusals = map[string]bool{`{"detail":"Not Found"}`: true, `{"detail":"Method Not Allowed"}`: true}

// wordRefusal puts a bare refusal of a worker into the endpoint's shape, with words. Every other body stays as it is.
func (w weigher) wordRefusal(status int, text []byte) []byte {
	if status != http.StatusNotFound && status != http.StatusMethodNotAllowed || w.req.Entry.Door != nil ||
		!bareRefusals[string(text)] {
		return text
	}
	f := message.FaultUnknownURL
	f.Message = "the worker serves no " + gate.Cut(w.req.In.Method+" "+w.req.In.Path)
	return f.InJSON(w.req.Shape())
}
