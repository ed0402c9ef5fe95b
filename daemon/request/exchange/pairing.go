package exchange

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// pairing is the prefill of one request, while a worker is found that answers it. A nil pairing leaves all to one
// worker.
type pairing struct {
	pair.Transfer
	req     *admission.Request
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
}

// pairs returns the pairing of a request, nil if it has none.
func pairs(r *admission.Request, c *route.Choice, s *sending) *pairing {
	rule := r.Pool.Pairing
	if !admission.IsWhole(r) {
		noteLong(r)
		return nil
	}
	if !admission.HasPair(r) {
		return nil
	}
	return &pairing{req: r, choice: c, history: &s.history, out: &s.Request, rule: rule, body: s.Body,
		Transfer: pair.Transfer{Connector: rule.Connector,
			Kind: r.Read.Req.Kind, Bootstrap: rule.Bootstrap, Prompts: len(r.Read.Req.Chains)}}
}

// noteLong records that a prompt is not split as memory does not have all of the body, which two workers would need.
// How long the prompt is nobody knows.
func noteLong(r *admission.Request) {
	if admission.HasRoles(r) && r.Generates() {
		r.In.Seen.Split = &route.Split{Result: string(journal.PrefillLong)}
		r.Journal.Prefilled(r.In, r.Pool, journal.PrefillLong, "")
	}
}

// splits reports whether another worker than the one that is to answer computes the prompt.
func (p *pairing) splits(to route.Target) bool {
	if p == nil || p.given {
		return false
	}
	is := p.isSplit(to)
	if !is {
		p.req.In.Seen.Split = nil // that of a worker before, which has failed
	}
	return is
}

// isSplit is splits of a request that may be.
func (p *pairing) isSplit(to route.Target) bool {
	p.lacks, p.named = route.Lacking(p.choice, to), ""
	if p.handed != nil && !slices.Equal(p.mate(to.Worker).Same, p.first.inner.req.Entry.Mate.Same) {
		p.keep(p.handed) // no worker of other labels reads it
		p.handed = nil
	}
	by, named := route.Paired(p.choice, to)
	switch {
	case p.handed != nil:
		return !p.first.isAt(to.Worker) // a prefiller that answers too holds what it has computed
	case p.Connector.Alone() && p.req.Pool.Workers.IsUnpaired(to.Worker, time.Now()):
		return false
	case by != nil:
		p.named = by.ID()
	}
	switch {
	case !p.Connector.Alone(): // a worker that is no decode server joins no pair
		return route.OnlyDecodes(p.choice, to)
	case by != nil:
		return true
	case named || p.req.Read.Req.BypassesCache:
		return false
	}
	rule := p.splitRule(to)
	return rule.Splits(p.choice, to)
}

// splitRule returns the rule of the pool for the prompt's caller and the worker that is to answer.
func (p *pairing) splitRule(to route.Target) route.SplitRule {
	m, fence := p.mate(to.Worker), p.rule.Prefillers
	if own := worker.Fence(p.req.In.Caller.Workers); len(own)+len(m.Same) > 0 {
		fence = slices.Concat(own, fence, m.Same)
	}
	return route.SplitRule{Threshold: p.rule.Threshold, Fence: fence, Near: m.Near, Far: p.rule.Far, Rate: p.rule.Rate,
		Always: p.rule.Always}
}

// mate returns which labels of the worker that answers a prefiller must have, and which one it had better have.
func (p *pairing) mate(w *worker.Worker) *message.Mate {
	m := new(message.Mate)
	if len(p.rule.Same) > 0 {
		m.Same = p.req.Pool.Workers.LabelsOf(w, p.rule.Same...)
	}
	if p.rule.Near != "" {
		m.Near = p.req.Pool.Workers.LabelsOf(w, p.rule.Near)[0]
	}
	return m
}

// maxPrefills bounds how many prefillers compute a prompt for a decoder that serves nothing alone.
const maxPrefills = 3

// prefill has a prefiller compute the prompt, and makes the request that of the second leg. If none does, the decoder
// gets the client's, or nothing if it serves nothing alone: prefill returns why.
func (p *pairing) prefill(ctx context.Context, a *attempt.Attempt, to route.Target) *attempt.Failure {
	p.decoder = a.Trip.Worker()
	if n := len(p.failed); n > 0 && (p.first.refusal != nil || n == maxPrefills || !p.req.PayRetry()) {
		return p.unserved()
	}
	if p.handed == nil {
		l := newLeg(p.req, p.Prefill(p.req.In.Body))
		l.named, p.first, p.meant = p.named, l, p.decoder
		l.inner.req.Entry.Mate = p.mate(to.Worker)
		if p.Connector.Pins() {
			l.wants = p.body
		}
		if p.named != "" {
			l.in.Seen.Partner = &route.Partner{Pair: p.named}
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
func (p *pairing) unserved() *attempt.Failure {
	f := &attempt.Failure{Reason: journal.Full, Fault: message.FaultNoPrefill, Grade: route.GradeUnseen}
	if p.first.refusal != nil { // it is the client's to mend
		f.Own, f.Grade = p.first.refusal, route.GradeFinal
	}
	return f
}

// kv is what a prefiller keeps for a decoder.
type kv struct {
	of     *leg
	handed []byte
	meant  *worker.Worker // that decoder
}

// keep records KV that some decoder is to read, so that the prefiller frees it.
func (p *pairing) keep(handed []byte) {
	p.unread = append(p.unread, kv{of: p.first, handed: handed, meant: p.meant})
}

// ended records what the end of an attempt shows of the KV that its decoder was told of. gone: the client left before
// the first byte.
//
// A decoder that got nothing, or whose client left, is taken for one that was not told. One that has failed, or answers
// with an error, may have read it: the next one gets a prefill of its own, as what was read is another request's by
// now.
func (p *pairing) ended(out *message.Outbound, f *attempt.Failure, gone bool) {
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

// free has the prefillers free what no decoder has read for sure. Who reads it a second time does no harm.
func (p *pairing) free() {
	if p == nil {
		return
	}
	if p.handed != nil {
		p.keep(p.handed)
	}
	pool, j := p.req.Pool, p.req.Journal
	for _, u := range p.unread {
		to := p.decoder
		if len(p.rule.Same) > 0 { // which may have other labels
			to = u.meant
		}
		work := new(account.Work) // which reads the body
		p.req.In.Account.Begin(work, true)
		go func() {
			defer func() { work.End(time.Now()) }()
			j.Prefilled(&u.of.in, pool, u.of.free(to, pool, u.handed), "")
		}()
	}
}

// sendBefore runs the first leg to its end, and reports whether it was of use. If the client leaves, the leg is
// dropped, or goes on until the prefiller's memory is freed.
func (p *pairing) sendBefore(ctx context.Context, l *leg) bool {
	done, gone, late := make(chan []byte), make(chan struct{}), make(chan struct{})
	l.late = func() { close(late) }
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
	select {
	case p.handed = <-done:
		l.by = l.inner.By()
		p.note(l)
		return l.result == journal.PrefillDone
	case <-late:
		p.req.In.Seen.Split = l.overdue()
		j.Prefilled(p.req.In, pool, journal.PrefillFailed, p.req.In.Seen.Split.Why)
	case <-ctx.Done():
	}
	l.drop()
	close(gone)
	return false
}

// sendBeside chooses a prefiller and runs the first leg beside the second. If it fails, the second waits in vain, and
// is ended.
func (p *pairing) sendBeside(ctx context.Context, a *attempt.Attempt, l *leg) bool {
	if !l.choose(ctx) || !l.alone(p.failed, p.lost) || !p.meet(ctx, l) {
		l.end()
		p.note(l)
		return false
	}
	l.in.Body = p.Prefill(p.req.In.Body)
	l.late = func() { l.cancel(context.DeadlineExceeded) }
	p.req.In.Seen.Split = l.begun()
	pool, j := p.req.Pool, p.req.Journal
	l.state.Store(legSent)
	p.beside = l
	go func() {
		defer l.end()
		l.send()
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
	return true
}

// meet sets where the two workers meet, and reports whether that is known.
func (p *pairing) meet(ctx context.Context, l *leg) bool {
	p.Host, p.ID, p.Room = l.host(), crand.Text(), rand.Uint64N(1<<62)
	if p.Connector.Proof() != pair.ByBootstrap {
		return true
	}
	p.Engine = l.engine(ctx, p.rule, p.Host)
	if p.Engine == "" {
		l.result = journal.PrefillUnnamed
		l.inner.release() // it may have the turn of the queue, and nobody else has one meanwhile
	}
	return p.Engine != ""
}

// tell names a prefiller to the sidecar of the decoder. If that prefiller hangs, the decoder waits for it in vain.
func (p *pairing) tell(ctx context.Context, a *attempt.Attempt, l *leg) bool {
	defer p.note(l)
	if !l.choose(ctx) || !l.hold() {
		l.end()
		return false
	}
	p.sidecar = l
	l.streams, l.model = p.req.Read.Req.Stream, strings.Clone(p.req.Read.Req.Model)
	l.watch(func() {
		l.failed.Store(true)
		if a.Unfill() {
			l.trip.Overdue(time.Now())
		}
	})
	p.out.Header = withPrefiller(p.out.Header, l.address())
	return true
}

// withPrefiller adds the field that names a prefiller to a sidecar. The field of the rank stays the last one.
func withPrefiller(header []upstream.Field, address string) []upstream.Field {
	return slices.Insert(header, 0, upstream.Field{Name: pair.HeaderPrefiller, Value: address})
}

// reset makes the request that of a worker which does both, whatever an attempt before has made of it.
func (p *pairing) reset() {
	if p == nil {
		return
	}
	p.out.Body, p.using, p.history.Counts = p.body, nil, nil
	if h := p.out.Header; len(h) > 0 && h[0].Name == pair.HeaderPrefiller {
		p.out.Header = h[1:]
	}
}

// stop has the next worker compute the prompt itself if a prefill has failed, or is lost.
func (p *pairing) stop(why *attempt.Failure) {
	if p == nil || why.Reason != journal.Unfilled {
		return
	}
	if p.handed != nil { // it may have failed before it read anything
		p.keep(p.handed)
	}
	p.handed, p.told = nil, nil
	p.given = p.Connector.Alone()
	switch {
	case p.given:
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
	case p.first.failed.Load(): // the leg counts it
		s.Result = string(journal.PrefillFailed)
	case s.Result == string(journal.PrefillDone), s.Result == string(journal.PrefillBegun):
		s.Result, s.Cached = string(journal.PrefillLost), 0
		p.req.Pool.Workers.HandoverLost(p.first.by, p.decoder, time.Now())
		p.req.Journal.Prefilled(p.req.In, p.req.Pool, journal.PrefillLost, "")
	}
}

// end ends what a sidecar has a prefiller do, once the second leg has given its answer or has failed.
func (p *pairing) end() {
	if p.sidecar != nil {
		p.sidecar.letGo()
		p.sidecar.end()
		p.sidecar = nil
	}
}

// prompt returns who computes the prompt of an attempt whose decoder has been told.
func (p *pairing) prompt() route.Prompt {
	if p.Connector.InTurn() {
		return route.Computed
	}
	return route.Away
}

// note records what became of the first leg.
func (p *pairing) note(l *leg) {
	p.req.In.Seen.Split = l.report()
	p.req.Journal.Prefilled(p.req.In, p.req.Pool, l.result, l.why())
}
