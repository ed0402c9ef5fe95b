package handoff

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Exchange is what the first leg is served by. It is chosen, queued, retried and learnt from as any request.
type Exchange interface {
	// Parts returns its request, which the leg fills in before Choose, and its choice.
	Parts() (*admission.Request, *route.Choice)
	// Choose decides who gets it. An answer refuses it, and no other method may be called then.
	Choose(ctx context.Context) *message.Outbound
	// Send returns the answer of the workers of the choice.
	Send(ctx context.Context) *message.Outbound
	// SendOnce has Send repeat nothing that a worker may have begun.
	SendOnce()
	// Charge has the key charged for its place at a worker until the trip ends.
	Charge(t *route.Trip, to route.Target, at time.Time)
	// Release returns what it holds, in place of Send.
	Release()
	Chosen() *worker.Worker  // first in the choice
	By() *worker.Worker      // that answered; nil = none has
	Under() *attempt.Attempt // the last one at a worker; nil = there is none
}

// Pairing is the prefill of one request, while a worker is found that answers it. A nil Pairing leaves all to one
// worker.
type Pairing struct {
	pair.Transfer
	req     *admission.Request
	begin   func() Exchange // makes one for a first leg
	choice  *route.Choice
	history *attempt.History
	out     *upstream.Request // to the worker at hand
	rule    *epoch.Pairing
	body    []byte // of the request at a worker that does both
	handed  []byte // where a prefiller keeps the KV, if no decoder has been told; nil = nowhere
	told    []byte // likewise, and the decoder that has the request has been told
	first   *leg   // the last one, that handed and told are of
	unread  []kv   // of decoders that were told and have failed or refused the request: they may have read it, or not

	decoder *worker.Worker // the last one
	meant   *worker.Worker // the one that first was for
	using   *leg           // whose KV it reads; nil = none's
	lacks   int            // tokens of the prompt, at the worker at hand
	named   string         // id of the prefiller that the strategy has named for the worker at hand; "" = none
	given   bool           // up: no prefiller is asked any more
	beside  *leg           // runs beside the second one at a prefiller; nil = none does
	sidecar *leg           // that a sidecar sends; nil = there is none

	failed []*worker.Worker // prefillers that get the prompt no more, for a decoder that serves nothing alone
	lost   *worker.Worker   // one whose KV such a decoder could not load; nil = none
	full   bool             // the last one that failed had no room
	untold int              // how often the chosen one never had the prompt, and it was chosen again
}

// Of returns the pairing of a request, nil if it has none. Each worker of the choice gets out; begin makes the exchange
// of a first leg.
func Of(r *admission.Request, c *route.Choice, h *attempt.History, out *upstream.Request,
	begin func() Exchange) *Pairing {
	rule := r.Pool.Pairing
	if !admission.IsWhole(r) {
		noteLong(r)
		return nil
	}
	if !admission.HasPair(r) {
		return nil
	}
	return &Pairing{req: r, choice: c, history: h, out: out, begin: begin, rule: rule, body: out.Body,
		Transfer: pair.Transfer{Connector: rule.Connector,
			Kind: r.Read.Req.Kind, Bootstrap: rule.Bootstrap, Prompts: len(r.Read.Req.Chains)}}
}

// noteLong records that a prompt is not split as memory does not have all of the body, which two workers would need.
// How long the prompt is nobody knows.
func noteLong(r *admission.Request) {
	if admission.HasRoles(r) && r.Generates() {
		r.In.Seen.Split = &record.Split{Result: string(journal.PrefillLong)}
		r.Journal.Prefilled(r.In, r.Pool, journal.PrefillLong, "")
	}
}

// Splits reports whether another worker than the one that is to answer computes the prompt.
func (p *Pairing) Splits(to route.Target) bool {
	if p == nil || p.given {
		return false
	}
	is, why := p.isSplit(to)
	if !is {
		p.req.In.Seen.Split = nil // that of a worker before, which has failed
	}
	if why != "" {
		p.req.In.Seen.Split = &record.Split{Result: string(journal.PrefillUnneeded), Why: why}
		p.req.Journal.Prefills(p.req.In, p.req.In.Seen.Split)
	}
	return is
}

// isSplit is Splits of a request that may be. Of a long prompt that is not split it says why.
func (p *Pairing) isSplit(to route.Target) (is bool, why string) {
	p.lacks, p.named = route.Lacking(p.choice, to), ""
	if p.handed != nil && !slices.Equal(p.mate(to.Worker).Same, p.first.req.Entry.Mate.Same) {
		p.keep(p.handed) // no worker of other labels reads it
		p.handed = nil
	}
	by, named := route.Paired(p.choice, to)
	switch {
	case p.handed != nil:
		return !p.first.isAt(to.Worker), "" // a prefiller that answers too holds what it has computed
	case p.Connector.Alone() && p.req.Pool.Workers.IsUnpaired(to.Worker, time.Now()):
		return false, ""
	case by != nil:
		p.named = by.ID()
	}
	switch {
	case !p.Connector.Alone(): // a worker that is no decode server joins no pair
		return route.OnlyDecodes(p.choice, to), ""
	case by != nil:
		return true, ""
	case named || p.req.Read.Req.BypassesCache:
		return false, ""
	}
	rule := p.splitRule(to)
	return rule.Decide(p.choice, to)
}

// splitRule returns the rule of the pool for the prompt's caller and the worker that is to answer.
func (p *Pairing) splitRule(to route.Target) route.SplitRule {
	m, fence := p.mate(to.Worker), p.rule.Prefillers
	if own := worker.Fence(p.req.In.Caller.Workers); len(own)+len(m.Same) > 0 {
		fence = slices.Concat(own, fence, m.Same)
	}
	return route.SplitRule{Threshold: p.rule.Threshold, Fence: fence, Near: m.Near, Far: p.rule.Far, Rate: p.rule.Rate,
		Always: p.rule.Always}
}

// mate returns which labels of the worker that answers a prefiller must have, and which one it had better have.
func (p *Pairing) mate(w *worker.Worker) *message.Mate {
	m := new(message.Mate)
	if len(p.rule.Same) > 0 {
		m.Same = p.req.Pool.Workers.LabelsOf(w, p.rule.Same...)
	}
	if v := w.Weights(); v != 0 && p.Connector.Alone() { // what other weights compute is not what it goes on with
		m.Same = append(m.Same, v.Only())
	}
	if p.rule.Near != "" {
		m.Near = p.req.Pool.Workers.LabelsOf(w, p.rule.Near)[0]
	}
	return m
}

// maxPrefills bounds how many prefillers compute a prompt for a decoder that serves nothing alone.
const maxPrefills = 3

// Prefill has a prefiller compute the prompt, and makes the request that of the second leg. If none does, the decoder
// gets the client's, or nothing if it serves nothing alone: Prefill returns why.
func (p *Pairing) Prefill(ctx context.Context, a *attempt.Attempt, to route.Target) *attempt.Failure {
	p.decoder = a.Trip.Worker()
	if n := len(p.failed) + p.untold; n > 0 && !p.Connector.Alone() && (p.first.refusal != nil || n >= maxPrefills ||
		!p.req.PayRetry()) {
		return p.unserved()
	}
	if p.handed == nil {
		l := newLeg(p.req, p.Transfer.Prefill(p.req.In.Body), p.begin())
		l.named, p.first, p.meant = p.named, l, p.decoder
		l.req.Entry.Mate = p.mate(to.Worker)
		if p.Connector.Pins() {
			l.wants = p.body
		}
		if p.named != "" {
			l.in.Seen.Aside = &record.Aside{Pair: p.named}
		}
		began := false
		switch {
		case p.Connector.Within():
			began = p.tell(ctx, a, l)
		case p.Connector.AtOnce():
			began = p.sendBeside(ctx, a, l)
		default:
			began = p.sendBefore(ctx, l)
		}
		if !began && !p.Connector.Alone() {
			return p.unserved()
		}
		if !began {
			p.given = true
			// a prompt that comes whole lacks its last token
			p.req.In.Seen.Believed = max(0, p.choice.Believed()+1-p.lacks)
			return nil
		}
	}
	a.Prompt, p.using = p.prompt(), p.first
	a.Faulty, p.history.Counts = p.lost != nil, sync.OnceValue(p.first.tokens)
	if p.Connector.InTurn() {
		a.Trip.Handed(to, time.Now())
	}
	p.out.Body = p.Decode(p.body, p.handed)
	p.handed, p.told = nil, p.handed // a decoder that has been told may have read it
	return nil
}

// unserved returns why a decoder that serves nothing alone does not get the request.
func (p *Pairing) unserved() *attempt.Failure {
	f := &attempt.Failure{Reason: journal.Full, Fault: message.FaultNoPrefill, Grade: route.GradeUnseen}
	if p.full || p.first.isFull() {
		f.Fault.Cause = message.NoFreeWorker
	}
	if p.first.refusal != nil { // it is the client's to mend
		f.Own, f.Grade = p.first.refusal, route.GradeFinal
	}
	return f
}

// Ended records what the end of an attempt shows of the KV that its decoder was told of. gone: the client left before
// the first byte.
//
// A decoder that got nothing, or whose client left, is taken for one that was not told. One that has failed, or answers
// with an error, may have read it: the next one gets a prefill of its own, as what was read is another request's by
// now.
func (p *Pairing) Ended(out *message.Outbound, f *attempt.Failure, gone bool) {
	if p != nil && p.using != nil && f == nil && out.Status < 400 {
		p.using.read = true
		p.req.Pool.Workers.HandedOver(p.using.by, p.decoder, p.using.began, time.Now())
	}
	switch {
	case p == nil:
		return
	case f != nil && p.beside != nil: // nobody reads what it computes
		p.beside.drop()
		p.beside = nil
		return
	case p.told == nil || f == nil && out.Status < 400:
		return
	case gone, f != nil && f.Grade == route.GradeUnseen:
		p.handed = p.told
	default:
		p.keep(p.told)
	}
	p.told = nil
}

// sendBefore runs the first leg to its end, and reports whether it was of use. If the client leaves, the leg is
// dropped, or goes on until the prefiller's memory is freed.
func (p *Pairing) sendBefore(ctx context.Context, l *leg) bool {
	done, gone, late := make(chan []byte), make(chan struct{}), make(chan struct{})
	l.late, l.asked = func() { close(late) }, make(chan *record.Split, 1)
	to, pool, j := p.decoder, p.req.Pool, p.req.Journal
	go func() {
		defer l.end()
		handed := l.run()
		select {
		case done <- handed:
		case <-gone:
			if end := l.free(to, pool, handed); !l.missed.Load() || handed != nil { // else it is counted
				j.Prefilled(&l.in, pool, end, l.why())
			}
		}
	}()
	for waits := true; waits; {
		waits = false
		select {
		case s := <-l.asked:
			j.Prefills(p.req.In, s)
			waits = true
		case p.handed = <-done:
			l.by = l.inner.By()
			p.note(l)
			return l.result == journal.PrefillDone
		case <-late:
			p.req.In.Seen.Split = l.overdue()
			j.Prefilled(p.req.In, pool, journal.PrefillFailed, p.req.In.Seen.Split.Why)
		case <-ctx.Done():
		}
	}
	l.abandon()
	close(gone)
	return false
}

// sendBeside chooses a prefiller and runs the first leg beside the second. If it fails, the second waits in vain, and
// is ended.
func (p *Pairing) sendBeside(ctx context.Context, a *attempt.Attempt, l *leg) bool {
	if !l.choose(ctx) || !l.alone(p.failed, p.lost) {
		l.end()
		p.note(l)
		return false
	}
	p.Host, p.ID, p.Room = l.host(), crand.Text(), rand.Uint64N(1<<62)
	l.in.Body = p.Transfer.Prefill(p.req.In.Body)
	l.late = func() { l.cancel(context.DeadlineExceeded) }
	p.req.In.Seen.Split = l.begun()
	p.req.Journal.Prefills(p.req.In, p.req.In.Seen.Split)
	pool, j := p.req.Pool, p.req.Journal
	l.state.Store(legSent)
	met := p.Connector.Proof() != pair.ByBootstrap
	var named chan string
	if !met {
		named = make(chan string, 1)
		l.req.Entry.Mate.Ahead = l.meets(p.rule, p.Host, &met, named)
	}
	go func() {
		defer l.end()
		l.send()
		if !met { // the second leg has not begun
			close(named)
			return
		}
		if l.dropped() {
			l.result = journal.PrefillDropped
		}
		j.Prefilled(&l.in, pool, l.result, l.why())
		if l.result == journal.PrefillDone || l.result == journal.PrefillDropped {
			a.Trip.Computed(time.Now())
			return
		}
		l.failed.Store(true)
		a.Unfill()
	}()
	if named != nil {
		stop := context.AfterFunc(ctx, l.drop)
		p.Engine = <-named
		stop()
		if p.Engine == "" {
			p.note(l)
			return false
		}
	}
	p.beside = l
	return true
}

// Reset makes the request that of a worker which does both, whatever an attempt before has made of it.
func (p *Pairing) Reset() {
	if p == nil {
		return
	}
	p.out.Body, p.using, p.history.Counts = p.body, nil, nil
	if h := p.out.Header; len(h) > 0 && h[0].Name == pair.HeaderPrefiller {
		p.out.Header = h[1:]
	}
}

// Stop has the next worker compute the prompt itself if a prefill has failed, or is lost.
func (p *Pairing) Stop(why *attempt.Failure) {
	if p == nil || why.Reason != journal.Unfilled {
		return
	}
	if p.handed != nil { // it may have failed before it read anything
		p.keep(p.handed)
	}
	p.handed, p.told = nil, nil
	untold := p.first.failed.Load() && p.first.isUntold()
	p.full = p.first.failed.Load() && p.first.isFull()
	p.given = p.Connector.Alone() && (!untold || p.untold == maxPrefills-1)
	switch {
	case p.given:
	case untold:
		p.untold++
	case p.first.failed.Load() && (p.lost != nil || !p.first.silent()):
		p.failed = append(p.failed, p.first.by)
	default:
		p.lost = p.first.by
	}
	switch s := p.req.In.Seen.Split; {
	case s == nil:
	case p.Connector.Within() && p.first.failed.Load():
		s.Result, s.Why = string(journal.PrefillFailed), s.Prefiller+": "+string(journal.Timeout)
		p.req.Journal.Prefilled(p.req.In, p.req.Pool, journal.PrefillFailed, s.Why)
		if p.first.trip.WorksOn(p.first.sent) {
			p.req.Pool.Workers.HandoverLost(p.first.by, p.decoder, time.Now())
		}
	case p.first.failed.Load(): // the leg counts it
		s.Result = string(journal.PrefillFailed)
	case s.Result == string(journal.PrefillDone), s.Result == string(journal.PrefillBegun):
		s.Result, s.Cached = string(journal.PrefillLost), 0
		p.req.Pool.Workers.HandoverLost(p.first.by, p.decoder, time.Now())
		p.req.Journal.Prefilled(p.req.In, p.req.Pool, journal.PrefillLost, "")
	}
}

// prompt returns who computes the prompt of an attempt whose decoder has been told.
func (p *Pairing) prompt() route.Prompt {
	if p.Connector.InTurn() {
		return route.Computed
	}
	return route.Away
}

// note records what became of the first leg.
func (p *Pairing) note(l *leg) {
	p.req.In.Seen.Split = l.report()
	p.req.Journal.Prefilled(p.req.In, p.req.Pool, l.result, l.why())
}

// Rewrite puts another body in place of the request's at a worker that does both.
func (p *Pairing) Rewrite(body []byte) {
	if p != nil {
		p.body = body
	}
}

// Computed reports whether a prefiller keeps the KV of the prompt, and no decoder has been told.
func (p *Pairing) Computed() bool { return p != nil && p.handed != nil }

// Beside reports whether the second leg is under way while the prompt is computed.
func (p *Pairing) Beside() bool { return p != nil && !p.Connector.InTurn() }
