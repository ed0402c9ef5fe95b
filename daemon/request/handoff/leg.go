package handoff

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// leg is the prefill of a request at a worker of its own: an exchange inside of another one. So it is chosen, queued,
// retried and learnt from as any request. It shares no memory with the client's request, which it may outlive.
type leg struct {
	inner  Exchange
	req    *admission.Request // of inner
	choice *route.Choice      // likewise
	in     message.Inbound
	began  time.Time
	ctx    context.Context
	cancel context.CancelCauseFunc
	work   account.Work // of the request's account: a leg may outlive the client
	counts account.Hold // in it
	memory account.Hold // of the body that is sent
	begins bool         // what a prefiller may have begun goes on to its end: see drop
	state  atomic.Uint32
	timer  *time.Timer // of the longest time that it may take
	limit  route.Prefilling

	clock *time.Timer // of limit
	sent  time.Time
	// Where a sidecar sends the leg:
	streams bool // the first byte of the answer shows when the prompt was computed
	model   string

	late   func()             // is called when it is over
	asked  chan *record.Split // gets the prefiller that was chosen; nil = nobody wants to know
	missed atomic.Bool        // it was
	by     *worker.Worker     // whose KV the decoder is told of, or nil
	lone   bool               // no other prefiller is left
	read   bool               // the decoder has got the KV
	result journal.Prefilled
	wants  []byte     // the request as a decoder gets it, if it pins; else nil
	named  string     // id of the worker that the strategy has named for the leg; "" = none
	lacks  string     // what keeps the two workers from meeting, "" = nothing
	status int        // of the prefiller's answer, 0 = there is none
	trip   route.Trip // of a leg that a sidecar sends
	held   bool       // the trip has begun
	place  account.Hold
	failed atomic.Bool // beside the second one it came to nothing
	usage  pair.Counts

	refusal *attempt.OwnError // what the prefiller says is wrong with the request; nil = nothing
	ended   chan struct{}     // is closed when the prefiller's answer has been read
}

// What has become of a leg. Its client may leave at any time.
const (
	legChosen  uint32 = iota // no prefiller has it yet
	legSent                  // a prefiller may have it
	legDropped               // nobody waits for it any more, and it is ended
)

// unbegun is the work of others, in seconds at least, behind which a prefiller has surely not begun with a prompt. An
// engine computes several prompts of its queue in one step. Where an error would end the engine, the estimate has to be
// wrong by more.
const (
	unbegun      = .25
	unbegunFatal = 1
)

// abandon drops a leg that nobody waits for, now or once an answer to another prompt shows that the prefiller has not
// begun with this one. A router that has waited for the processor knows nothing of that: answers that came meanwhile
// are still to be read.
func (l *leg) abandon() {
	if l.state.CompareAndSwap(legChosen, legDropped) {
		l.cancel(message.ErrClientGone)
		return
	}
	go func() {
		for inTime := 0; !l.dropped(); inTime++ {
			looked := time.Now()
			select {
			case <-l.ended:
				return
			case <-time.After(dropAgain):
			}
			if time.Since(looked) > 2*dropAgain {
				inTime = 0
			}
			if inTime > 1 {
				l.drop()
			}
		}
	}()
}

const dropAgain = 20 * time.Millisecond

// drop ends a leg that nobody waits for, if that does no harm. A prefiller with NIXL keeps the KV of a prompt that it
// has computed until a decoder reads it, and the router could not tell whether it has. One with LMCache may end its
// engine when a request is ended while KV is stored (vllm 43226). So at these two a leg goes on once it may have begun.
func (l *leg) drop() {
	a := l.inner.Under()
	ahead := unbegun
	if !l.req.Pool.Pairing.Connector.Pins() {
		ahead = unbegunFatal
	}
	free := !l.begins || a == nil || a.Trip.Ahead(time.Now()) > ahead
	if l.state.CompareAndSwap(legChosen, legDropped) || free && l.state.CompareAndSwap(legSent, legDropped) {
		l.cancel(message.ErrClientGone)
	}
}

// dropped reports whether drop has ended the leg.
func (l *leg) dropped() bool { return l.state.Load() == legDropped }

// newLeg makes the first leg of a request, with its body, for the model that was chosen.
func newLeg(r *admission.Request, body []byte, inner Exchange) *leg {
	in := r.In
	l := &leg{inner: inner, began: time.Now(), result: journal.PrefillFailed, begins: !r.Pool.Pairing.Connector.Aborts(),
		ended: make(chan struct{})}
	l.in = message.Inbound{Epoch: in.Epoch, Endpoint: in.Endpoint, Method: in.Method, Path: strings.Clone(r.Target()),
		Query: strings.Clone(in.Query), Body: body, ID: strings.Clone(in.ID), Remote: strings.Clone(in.Remote),
		Account: in.Account,
		Host:    strings.Clone(in.Host), TLS: in.TLS, Caller: in.Caller}
	header := slices.Clone(in.Header)
	for i := range header {
		header[i] = upstream.Field{Name: strings.Clone(header[i].Name), Value: strings.Clone(header[i].Value)}
	}
	l.in.SetHeader(header)
	in.Account.Begin(&l.work, true)
	in.Account.Take(&l.counts, account.Prefill, 1)
	in.Account.Take(&l.memory, account.Memory, int64(cap(body)))
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	l.timer = time.AfterFunc(r.Pool.HeaderTimeout, func() { l.cancel(context.DeadlineExceeded) })
	l.req, l.choice = inner.Parts()
	l.req.Journal = r.Journal.Legs
	l.req.Lethal, l.req.Kept = r.Lethal, r.Kept
	l.req.In, l.req.Epoch, l.req.Alias = &l.in, r.Epoch, r.Alias
	l.req.Entry = message.Entry{Pool: r.Pool.Name, Op: message.Prefilling, Salt: r.Entry.Salt,
		Model: r.Entry.Model}
	l.req.ID, l.req.Arrived = r.ID, l.began
	return l
}

// choose decides who computes the prompt, and reports whether there is somebody.
func (l *leg) choose(ctx context.Context) bool {
	if out := l.inner.Choose(ctx); out != nil {
		l.result, l.status = journal.PrefillNone, out.Status
		if r := l.req; r.Pool != nil {
			if ids := r.Pool.Workers.Unpaired(r.Fence(), time.Now()); len(ids) > 0 {
				l.lacks = journal.SetAside + strings.Join(ids, ", ")
			}
		}
		return false
	}
	return true
}

// alone keeps the leg to one prefiller, as the decoder is told which one to meet: one that is not in but, and rather
// only if there is no other one.
func (l *leg) alone(but []*worker.Worker, rather *worker.Worker) bool {
	l.lone = l.choice.Left() <= 1+len(but)
	if !l.choice.Alone(but, rather, time.Now()) {
		l.result = journal.PrefillNone
		l.inner.Release()
		return false
	}
	l.by = l.inner.Chosen()
	l.inner.SendOnce()
	return true
}

// run has the prompt computed, and returns where the KV is kept, if the answer says so.
func (l *leg) run() []byte {
	switch {
	case !l.choose(l.ctx):
		return nil
	case !l.state.CompareAndSwap(legChosen, legSent):
		l.inner.Release()
		return nil
	}
	if l.asked != nil {
		l.asked <- l.begun()
	}
	return l.send()
}

// miss records that the prompt was not computed in time. Where no decoder computes it, a prefiller that works on for
// others keeps it, and the only one that is left has three times as long.
func (l *leg) miss() {
	a := l.inner.Under()
	for n := 1; a != nil && !l.req.Pool.Pairing.Connector.Alone() &&
		(l.lone && n < 3 || a.Trip.WorksOn(time.Now().Add(-l.limit.Limit))); n++ {
		select {
		case <-l.ended:
			return
		case <-time.After(l.limit.Limit):
		}
	}
	l.missed.Store(true)
	if a != nil { // else it is in the router's own queue
		a.Trip.Overdue(time.Now(), l.limit.Limit)
	}
	l.late()
}

// send sends the leg to the prefiller that was chosen, or to another one if that fails.
func (l *leg) send() []byte {
	defer close(l.ended)
	l.limit = route.Prefills(l.choice)
	if !l.begins {
		l.limit.BeSure(l.req.Pool.HeaderTimeout)
	}
	l.clock, l.sent = time.AfterFunc(l.limit.Limit, l.miss), time.Now()
	defer l.clock.Stop()
	out := l.inner.Send(l.ctx)
	var text []byte
	var err error
	if out.Stream != nil && out.Status == http.StatusOK {
		text, err = pair.Excerpt(out.Stream)
		_ = out.Stream.Close()
	} else {
		text, _, err = out.Whole(1 << 20)
	}
	l.status = out.Status
	pool := l.req.Pool
	switch {
	case l.inner.By() == nil || err != nil:
		return nil
	case out.Status == http.StatusBadRequest, out.Status == http.StatusRequestEntityTooLarge,
		out.Status == http.StatusUnprocessableEntity:
		l.result = journal.PrefillRefused
		l.refusal = &attempt.OwnError{Worker: l.inner.By().ID(),
			Outbound: message.Outbound{Status: out.Status, Header: out.Header, Body: text}}
		return nil
	case out.Status != http.StatusOK:
		return nil
	}
	l.result = journal.PrefillDone
	l.limit.Took(time.Since(l.sent))
	if u := &l.in.Seen.Usage; u.Known && l.in.Endpoint.Kind == prompt.Messages {
		l.usage = pair.Counted(text, u.Cached)
	}
	if !pool.Pairing.Connector.Pins() {
		return nil
	}
	handed := pair.Handed(text)
	if handed == nil {
		l.result = journal.PrefillUnnamed
	} else if !pool.Clients.OwnEngine(l.inner.By().URL(), pair.EngineHanded(handed)) {
		// A decoder would read what that one keeps, which is another prompt's.
		l.result, l.lacks = journal.PrefillUnnamed, "its kv_transfer_params name the engine of another prefiller"
		return nil
	}
	return handed
}

// tokens returns what the prefiller has found in its cache, nothing if it does not say so, as engines may where that is
// nothing: a decoder counts all that it was handed. A leg beside the second one may end a moment later than that. The
// answer to a sidecar is not seen.
func (l *leg) tokens() (n pair.Counts) {
	if l.held {
		return n
	}
	late := time.NewTimer(time.Second)
	defer late.Stop()
	select {
	case <-l.ended:
		n = l.usage
		if u := &l.in.Seen.Usage; u.CachedKnown {
			n.Cached = u.Cached
		}
	case <-late.C:
	}
	return n
}

// end returns what the leg holds. It may be called more than once.
func (l *leg) end() {
	l.timer.Stop()
	if l.clock != nil {
		l.clock.Stop()
	}
	l.cancel(nil)
	l.memory.Release()
	l.counts.Release()
	l.work.End(time.Now())
}

// isAt reports whether w computes the prompt, or has done so.
func (l *leg) isAt(w *worker.Worker) bool { return l.worker() == w }

// worker returns the prefiller that has computed the prompt, or does so for a sidecar; nil = none has.
func (l *leg) worker() *worker.Worker {
	if l.held {
		return l.by
	}
	return l.inner.By()
}

// why returns why the prompt was not computed, in the words of metrics and errors; "" if it was.
func (l *leg) why() string {
	seen := &l.in.Seen
	n := len(seen.Attempts)
	switch {
	case l.result == journal.PrefillDone, l.dropped():
		return ""
	case l.lacks != "":
		return l.lacks
	case l.result == journal.PrefillUnnamed:
		return "its answer has no kv_transfer_params"
	case l.worker() != nil && l.status != http.StatusOK:
		return fmt.Sprint("status ", l.status)
	case l.worker() != nil:
		return "its answer broke off"
	case n > 0:
		return seen.Attempts[n-1].Worker + ": " + seen.Attempts[n-1].Reason
	}
	return seen.End
}

// silent reports whether the prefiller closed the connection without a byte of an answer. It may have ended, or just
// have closed an idle connection.
func (l *leg) silent() bool {
	n := len(l.in.Seen.Attempts)
	return l.inner.By() == nil && n > 0 && l.in.Seen.Attempts[n-1].Reason == string(journal.NoAnswer)
}

// isFull reports whether the prompt was not computed as the prefillers are at their limits, or the last one said so.
func (l *leg) isFull() bool {
	switch l.status {
	case http.StatusTooManyRequests, 529, http.StatusRequestTimeout, http.StatusTooEarly:
		return true
	case http.StatusServiceUnavailable:
		return l.in.Seen.Worker != "" // else it is the router's: none is up, or it has failed
	}
	return false
}

// isUntold reports whether the prefiller never had the prompt, as others took its last place, or was removed before it
// answered. One that has come under its id may take the prompt.
func (l *leg) isUntold() bool {
	return l.by != nil && l.inner.By() == nil &&
		(route.Trips(l.choice) == 0 || l.req.Pool.Workers.At(l.by.Slot()) != l.by)
}

// begun returns what the record of the client's request has of a leg that is sent beside it.
func (l *leg) begun() *record.Split {
	id := l.inner.Chosen().ID()
	return &record.Split{Prefiller: id, Named: id == l.named, Result: string(journal.PrefillBegun),
		Took: time.Since(l.began)}
}

// overdue returns what the record of the client's request has of a leg that has missed its limit, and may go on.
func (l *leg) overdue() *record.Split {
	s := &record.Split{Result: string(journal.PrefillFailed), Why: "all prefillers are full", Took: time.Since(l.began)}
	if a := l.inner.Under(); a != nil {
		s.Prefiller = a.Trip.Worker().ID()
		s.Named, s.Why = s.Prefiller == l.named, s.Prefiller+": "+string(journal.Timeout)
	}
	return s
}

// report returns what the record of the client's request has of the leg.
func (l *leg) report() *record.Split {
	s := &record.Split{Result: string(l.result), Why: l.why(), Took: time.Since(l.began)}
	if w := l.worker(); w != nil {
		s.Prefiller, s.Named = w.ID(), w.ID() == l.named
	}
	if l.result == journal.PrefillDone {
		s.Cached = l.tokens().Cached
	}
	return s
}
