package exchange

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/adapters"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/attempt"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/pair"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/direct"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// leg is the prefill of a request at a worker of its own: an exchange inside of another one. So it is chosen, queued,
// retried and learnt from as any request. It shares no memory with the client's request, which it may outlive.
type leg struct {
	inner  *Exchange
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

	// Where a sidecar sends the leg:
	clock   *time.Timer // of limit
	sent    time.Time
	streams bool // the first byte of the answer shows when the prompt was computed
	model   string

	late   func()         // is called when it is over
	missed atomic.Bool    // it was
	by     *worker.Worker // whose KV the decoder is told of, or nil
	read   bool           // the decoder has got the KV
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

// unbegun is the work of others, in seconds, behind which a prefiller has surely not begun with a prompt. An engine
// computes several prompts of its queue in one step, and the answers of a busy one arrive late.
const unbegun = .25

// drop ends a leg that nobody waits for, if that does no harm. A prefiller with NIXL keeps the KV of a prompt that it
// has computed until a decoder reads it, and the router could not tell whether it has. One with LMCache may end its
// engine when a request is ended while KV is stored (vllm 43226). So at these two a leg goes on once it may have begun.
func (l *leg) drop() {
	a := l.inner.under.Load()
	free := !l.begins || a == nil || a.Trip.Ahead(time.Now()) > unbegun
	if l.state.CompareAndSwap(legChosen, legDropped) || free && l.state.CompareAndSwap(legSent, legDropped) {
		l.cancel(message.ErrClientGone)
	}
}

// dropped reports whether drop has ended the leg.
func (l *leg) dropped() bool { return l.state.Load() == legDropped }

// newLeg makes the first leg of a request, with its body, for the model that was chosen.
func newLeg(r *admission.Request, body []byte) *leg {
	in := r.In
	l := &leg{began: time.Now(), result: journal.PrefillFailed, begins: !r.Pool.Pairing.Connector.Aborts(),
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
	l.inner = &Exchange{}
	l.inner.req.Journal = r.Journal.Legs
	l.inner.req.Lethal, l.inner.req.Kept = r.Lethal, r.Kept
	l.inner.req.In, l.inner.req.Epoch, l.inner.req.Alias = &l.in, r.Epoch, r.Alias
	l.inner.req.Entry = message.Entry{Pool: r.Pool.Name, Op: message.Prefilling, Salt: r.Entry.Salt,
		Model: r.Entry.Model}
	l.inner.req.ID, l.inner.req.Arrived = r.ID, l.began
	return l
}

// choose decides who computes the prompt, and reports whether there is somebody.
func (l *leg) choose(ctx context.Context) bool {
	if out := l.inner.Choose(ctx); out != nil {
		l.result = journal.PrefillNone
		if r := &l.inner.req; r.Pool != nil {
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
	if !l.inner.choice.Alone(but, rather, time.Now()) {
		l.result = journal.PrefillNone
		l.inner.release()
		return false
	}
	l.by, l.inner.once = l.inner.Chosen(), true
	return true
}

// run has the prompt computed, and returns where the KV is kept, if the answer says so.
func (l *leg) run() []byte {
	switch {
	case !l.choose(l.ctx):
		return nil
	case !l.state.CompareAndSwap(legChosen, legSent):
		l.inner.release()
		return nil
	}
	return l.send()
}

// miss records that the prompt was not computed in time.
func (l *leg) miss() {
	l.missed.Store(true)
	if a := l.inner.under.Load(); a != nil { // else it is in the router's own queue
		a.Trip.Overdue(time.Now())
	}
	l.late()
}

// send sends the leg to the prefiller that was chosen, or to another one if that fails.
func (l *leg) send() []byte {
	defer close(l.ended)
	l.limit = route.Prefills(&l.inner.choice)
	if !l.begins {
		l.limit.BeSure()
	}
	clock, sent := time.AfterFunc(l.limit.Limit, l.miss), time.Now()
	defer clock.Stop()
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
	pool := l.inner.req.Pool
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
	l.limit.Took(time.Since(sent))
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

// hold counts the prompt at the prefiller, which gets it from somebody else.
func (l *leg) hold() bool {
	l.limit = route.Prefills(&l.inner.choice)
	l.limit.BeSure()
	now := time.Now()
	to, ok := l.inner.choice.Next(now)
	l.held = ok && l.inner.choice.Send(&l.trip, to, nil, now)
	if !l.held {
		l.inner.release() // with its turn of the queue
	} else {
		l.inner.charge(&l.trip, to, now)
		l.in.Account.Take(&l.place, account.Worker, 1)
		l.result, l.inner.by, l.by = journal.PrefillDone, to.Worker, to.Worker
	}
	return l.held
}

// watch calls lost if the prefiller hangs. Of an answer in one piece nothing shows when its prompt was computed: after
// a while the prefiller gets a prompt of one word behind it, unless it shows otherwise that it works on.
func (l *leg) watch(lost func()) {
	l.sent = time.Now()
	if l.streams {
		l.clock = time.AfterFunc(l.limit.Limit, lost)
		return
	}
	l.clock = time.AfterFunc(soundAfter, func() {
		for since := l.sent; l.ctx.Err() == nil; since = since.Add(soundAfter) {
			if l.trip.WorksOn(since) {
				time.Sleep(soundAfter)
				continue
			}
			if !l.sound(since) && l.ctx.Err() == nil {
				lost()
			}
			return
		}
	})
}

// soundAfter is half of the least limit, so that the answer to a word can come before that.
const soundAfter = 250 * time.Millisecond

// sound reports whether the prefiller answers a prompt of one word before the limit is over from that time on, whatever
// it says.
func (l *leg) sound(since time.Time) bool {
	ctx, cancel := context.WithDeadline(l.ctx, since.Add(l.limit.Limit))
	defer cancel()
	pool := l.inner.req.Pool
	client := pool.Clients.Get(l.by.URL())
	if client == nil {
		return true
	}
	model, _ := json.Marshal(l.model) // a string cannot fail
	resp, err := client.Do(ctx, &upstream.Request{Method: http.MethodPost, Path: "/v1/completions", At: time.Now(),
		Body:   fmt.Appendf(nil, `{"model":%s,"prompt":"a","max_tokens":1}`, model),
		Header: message.PinRank(message.WorkerHeader(nil, &l.in, rand.Text(), pool, nil), l.by.RankHeader())})
	if err != nil {
		return false
	}
	defer resp.Close()
	l.trip.Flow(time.Now())
	if since == l.sent {
		l.limit.Took(time.Since(since))
	}
	return true
}

// letGo ends what hold counts.
func (l *leg) letGo() {
	if l.held {
		now, o := time.Now(), judge.Outcome{Kind: judge.Canceled, Partly: true}
		if l.read {
			o = judge.Outcome{Kind: judge.Answered}
		}
		if l.read && l.streams { // else it is the end of the answer
			l.trip.FirstByte(now)
		}
		if took := now.Sub(l.sent); l.read && (l.streams || took < soundAfter) {
			l.limit.Took(took)
		}
		l.trip.End(&o, route.End{At: now})
		l.place.Release()
		l.inner.release()
	}
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
func (l *leg) isAt(w *worker.Worker) bool { return l.inner.By() == w }

// address is what a sidecar is told of the prefiller that was chosen, as HOST:PORT.
func (l *leg) address() string {
	u, err := url.Parse(l.inner.Chosen().URL())
	if err != nil {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
	}
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// host returns the name or address of the prefiller that was chosen.
func (l *leg) host() string {
	u, err := url.Parse(l.inner.Chosen().URL())
	if err != nil {
		return ""
	}
	return u.Hostname()
}

// bootstraps asks the bootstrap servers of prefillers.
var bootstraps = direct.Client(nil, 2*time.Second)

// engine asks a prefiller's bootstrap server for the id of the engine that was chosen, "" if it does not say.
func (l *leg) engine(ctx context.Context, rule *epoch.Pairing, host string) string {
	port := strconv.Itoa(rule.Bootstrap)
	l.lacks = "no bootstrap server answers at bootstrap_port " + port
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/query", nil)
	if err != nil {
		return ""
	}
	resp, err := bootstraps.Do(r)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	l.lacks = "what answers at bootstrap_port " + port + " names no engine"
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil || !json.Valid(text) {
		return ""
	}
	rank, _ := strconv.Atoi(l.inner.Chosen().RankHeader())
	id := pair.EngineOf(text, rank)
	if id != "" {
		l.lacks = ""
	}
	return id
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
	case l.inner.By() != nil && l.status != http.StatusOK:
		return fmt.Sprint("status ", l.status)
	case l.inner.By() != nil:
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

// begun returns what the record of the client's request has of a leg that is sent beside it.
func (l *leg) begun() *route.Split {
	id := l.inner.Chosen().ID()
	return &route.Split{Prefiller: id, Named: id == l.named, Result: string(journal.PrefillBegun),
		Took: time.Since(l.began)}
}

// overdue returns what the record of the client's request has of a leg that has missed its limit, and may go on.
func (l *leg) overdue() *route.Split {
	s := &route.Split{Result: string(journal.PrefillFailed), Why: "all prefillers are full", Took: time.Since(l.began)}
	if a := l.inner.under.Load(); a != nil {
		s.Prefiller = a.Trip.Worker().ID()
		s.Named, s.Why = s.Prefiller == l.named, s.Prefiller+": "+string(journal.Timeout)
	}
	return s
}

// report returns what the record of the client's request has of the leg.
func (l *leg) report() *route.Split {
	s := &route.Split{Result: string(l.result), Why: l.why(), Took: time.Since(l.began)}
	if w := l.inner.By(); w != nil {
		s.Prefiller, s.Named = w.ID(), w.ID() == l.named
	}
	if l.result == journal.PrefillDone {
		s.Cached = l.tokens().Cached
	}
	return s
}

// maxFreeing bounds how many requests at a time only have a prefiller free its memory.
const maxFreeing = 256

// freeing counts them.
var freeing atomic.Int32

// free has a decoder read what the prefiller keeps for a request whose client has left, or that the decoder has
// refused: else the memory is lost until the prefiller gives up. The answer of one token is thrown away. A decoder that
// is busy, fails or has gone is followed by the others, until one has read it. That a decoder answers 500 may mean that
// the KV is gone, or anything else.
func (l *leg) free(to *worker.Worker, p *epoch.Pool, handed []byte) journal.Prefilled {
	if l.dropped() && handed == nil { // else its answer came before its end
		return journal.PrefillDropped
	}
	if handed == nil || !p.Pairing.Connector.Pins() {
		return l.result
	}
	defer freeing.Add(-1)
	if freeing.Add(1) > maxFreeing {
		return journal.PrefillPinned
	}
	prefiller, computed, end := l.inner.By().Key(), time.Now(), journal.PrefillPinned
	until, missing := computed.Add(freeFor), 0 // decoders that do not have the model
	for wait, n := freeAgain, 1; ; wait, n = min(2*wait, 20*freeAgain), n+1 {
		all := p.Workers.Reachable(p.Pairing.Answering(l.in.Caller.Workers))
		switch l.readKept(to, p, handed) {
		case http.StatusOK:
			return journal.PrefillFreed
		case http.StatusInternalServerError:
			end = journal.PrefillFreed // by the time that no decoder is asked any more
			if p.Workers.Settled(prefiller, computed) && !p.Workers.Survived(prefiller, computed) {
				return end
			}
			if by := time.Now().Add(failsFor); by.Before(until) {
				until = by
			}
		case http.StatusNotFound:
			missing++
			if missing > len(all) {
				return end
			}
		case 0, http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusRequestTimeout, 529,
			http.StatusBadGateway, http.StatusGatewayTimeout:
		default:
			return journal.PrefillPinned
		}
		if time.Now().Add(wait).After(until) {
			return end
		}
		time.Sleep(wait)
		if len(all) > 0 && len(p.Pairing.Same) == 0 { // else others may hold another revision of the model
			to = all[n%len(all)]
		}
	}
}

// A decoder is asked again to read what the prefiller keeps, as long as most prefillers keep it. An engine that fails
// may recover for failsFor; by then 500 has meant that the KV is gone.
const (
	freeAgain = 100 * time.Millisecond
	freeFor   = 30 * time.Second
	failsFor  = 3 * time.Second
)

// readWithin bounds how long one decoder may take to read it. One that hangs keeps no other from reading it, and one
// with a long queue frees it when the request ends before its turn.
const readWithin = time.Second

// readKept has a decoder read what the prefiller keeps, under an id of its own, and returns the status of its answer;
// 0 = there is none. If the model is an adapter, the decoder loads it before.
func (l *leg) readKept(by *worker.Worker, p *epoch.Pool, handed []byte) int {
	to := p.Clients.Get(by.URL())
	if to == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	if p.Loader != nil {
		unused, err := p.Loader.Load(ctx, by, adapters.Want{Name: l.in.Seen.Model, Caller: l.in.Caller.Name,
			Until: time.Now().Add(readWithin)})
		if err != nil {
			return 0
		}
		defer unused()
	}
	t := pair.Transfer{Connector: p.Pairing.Connector, Kind: l.in.Endpoint.Kind}
	resp, err := to.Do(ctx, &upstream.Request{Method: l.in.Method, Path: l.in.Path, Body: t.Free(l.wants, handed),
		Header: message.WorkerHeader(nil, &l.in, rand.Text(), p, nil), At: time.Now()})
	if err != nil {
		return 0
	}
	defer resp.Close()
	if _, err := io.Copy(io.Discard, resp); err != nil && resp.Status == http.StatusOK {
		return 0
	}
	return resp.Status
}
