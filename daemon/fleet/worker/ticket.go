package worker

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/measure"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Dispatch describes a request that is sent to a worker.
type Dispatch struct {
	PromptTokens int
	CachedTokens int  // of these, how many the index expects in the worker's cache
	Holds        int  // of its Query: else the pool would refuse what its Snapshot offers, again and again
	Backlogged   bool // the Snapshot offered w although more prefill is queued there than MaxWait
	Beginning    Beginning
	Output       int      // tokens that the answer is expected to have; 0 = not known
	Sequences    int      // that the request is to an engine: its prompts, times the answers to each; 0 = 1
	Est          float64  // P/m: seconds of prefill on a worker of slowness 1; 0 = Estimate(PromptTokens, CachedTokens)
	Model        string   // that it asks for; "" = it names none
	Fence        Fence    // of its Query: a label may have been taken from w since then
	Only         *Allowed // of its Query
	Class        uint8    // of requests that a worker may refuse apart from others, below Classes
	Whole        bool     // the answer comes in one piece: its first byte does not show when prefill ended
	Talks        bool     // the answer is generated
	Bound        bool     // the worker has the request's session, and may take it while it drains
	Tried        uint64   // the workers that have had it before: a bit for each, by its slot modulo 64
	Paired       bool     // another worker computes its prompt, or answers what it is the prompt of
	Coming       bool     // it takes a place when it arrives: see Ticket.Arrive
	Holder       Holder   // called if the worker went down or fell silent with the request; nil = the request waits on
}

// Ticket is one request sent to a worker, until it ends. Its methods may be called in any order, from any goroutine,
// and after the worker was removed.
type Ticket struct {
	pool    *Pool
	worker  *Worker
	request request
}

// Begin counts a request that is about to be sent to w, if w still takes requests, and reports whether it does. Since
// the snapshot another request may have got w's last free place or become its trial, or w may have gone down. Then the
// caller goes on to its next choice. If none is left, the Standing of a new Snapshot gives the answer. A worker that
// was removed since the snapshot still accepts, but a removed rank of a worker that stays does not.
//
// t is the caller's memory, which must not be moved, nor be used for a second ticket. Every ticket must be ended.
func (p *Pool) Begin(t *Ticket, w *Worker, d Dispatch, now time.Time) bool {
	t.fill(p, w, d, now)
	p.mu.Lock()
	defer p.unlock()
	if !p.admits(w, &d, t.request.Sent) {
		return false
	}
	p.fleet.requests++
	t.request.Number = p.fleet.requests
	t.request.adapts = isAdapter(&p.fleet, d.Model)
	p.fleet.begin(w, &t.request)
	p.watchTrial(w, &t.request)
	return true
}

// watchTrial gives r up after a while if it is the breaker's trial.
func (p *Pool) watchTrial(w *Worker, r *request) {
	if w.health.IsTrial(&r.Request) && r.holder != nil {
		predicted := p.fleet.speed.Value * w.speed.Times() * r.est
		patience := judge.Patience(&r.Request, predicted, p.fleet.conf.ScrapeInterval)
		p.later(patience, func(then time.Time) { p.giveUpTrial(w, r, then) })
	}
}

func (t *Ticket) fill(p *Pool, w *Worker, d Dispatch, now time.Time) {
	t.pool, t.worker = p, w
	r := &t.request
	r.Sent = p.fleet.clock(now)
	r.est = d.Est
	r.tokens = d.PromptTokens
	r.cached = d.CachedTokens
	r.output = d.Output
	r.sequences = max(1, d.Sequences)
	r.begins(&d.Beginning)
	r.model = d.Model
	if len(d.Fence) > 0 || d.Only != nil {
		r.within = &within{d.Fence, d.Only}
	}
	r.Class = d.Class % judge.Classes
	r.Whole = d.Whole
	r.talks = d.Talks
	r.holder = d.Holder
	r.tried = d.Tried
	r.Paired, r.coming, r.Away = d.Paired, d.Coming, d.Coming
	if r.est <= 0 {
		r.est = p.Estimate(d.PromptTokens, d.CachedTokens)
	}
}

// admits reports whether w, which a snapshot offered a moment ago, still takes the request. The caller holds p.mu.
func (p *Pool) admits(w *Worker, d *Dispatch, now time.Duration) bool {
	m := &moment{now: now, slowness: p.fleet.speed.Value}
	switch {
	case !(&within{d.Fence, d.Only}).admits(w):
		return false
	case d.Coming && w.endpoint.expectsMost(&p.fleet.conf.limits):
		return false
	case w.packed(&p.fleet.conf.limits, d.Holds, &d.Beginning), !d.Backlogged && w.backlogged(&p.fleet.conf.limits, m):
		return false
	case w.place != configured: // removed; a removed rank of a worker that stays cannot be reached
		return w.endpoint.place != configured
	case w.offered:
		return true
	case d.Bound:
		return w.keeps(now)
	}
	return w.takes(now) && !w.health.Refuses(d.Class%judge.Classes, now)
}

// BeginForeign counts a request that another router sent at that time to the worker with that Key. It returns nil if
// there is no such worker, or if it is down: a request sent there then has failed. Every Foreign must be ended.
// BeginForeign ignores Bound and Holder of d. seen is false for a request that the pool learns of long after it was
// sent: it counts in flight, but not as work offered now.
func (p *Pool) BeginForeign(key uint64, d Dispatch, seen bool, at time.Time) *Foreign {
	f := &Foreign{pool: p}
	p.mu.Lock()
	defer p.mu.Unlock()
	f.worker = p.upFor(key, &f.request, &d, at)
	if f.worker == nil {
		return nil
	}
	p.fleet.beginForeign(f.worker, &f.request, seen)
	return f
}

// upFor makes r a request of another router to the worker with that Key, and returns the worker; nil if no worker has
// the Key, or it is down. The caller holds p.mu.
func (p *Pool) upFor(key uint64, r *request, d *Dispatch, at time.Time) *Worker {
	w := p.fleet.keyed[key]
	if w == nil || w.health.State() == judge.Down {
		return nil
	}
	r.Sent = p.fleet.clock(at)
	r.est = d.Est
	r.tokens = d.PromptTokens
	r.cached = d.CachedTokens
	r.Whole = d.Whole
	if r.est <= 0 {
		r.est = p.fleet.conf.estimate(r.tokens, r.cached)
	}
	return w
}

// PassForeign counts a request that another router sent at that time, and that has ended. It has the effect of
// BeginForeign, FirstByte and End together. A zero first means that no first byte came.
func (p *Pool) PassForeign(key uint64, d Dispatch, at, first time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := &p.fleet.passing
	w := p.upFor(key, r, &d, at)
	if w == nil {
		return
	}
	p.fleet.beginForeign(w, r, true)
	if !first.IsZero() {
		at := p.fleet.clock(first)
		w.queue.passed(r, at)
		w.engine.Moved(at)
	}
	w.endForeign(r)
	p.fleet.moved(w, max(r.Sent, p.fleet.rates.Aged()))
}

// FillShared fills the rows of workers that have no room for the given number of tokens. It writes the tokens that
// requests in flight hold there, each shared token counted once, and how many of them belong to the prompt. The other
// rows' workers have room for all of it.
func (p *Pool) FillShared(rows []abi.Row, workers []*Worker, b *Beginning, need float64) {
	locked := false
	for i := range rows {
		if rows[i].Room() >= need {
			continue
		}
		if !locked {
			locked = true
			p.mu.Lock()
			defer p.mu.Unlock()
		}
		w := workers[i]
		w.kv.countShared(&w.flight)
		rows[i].HeldTokens = w.heldTokens()
		rows[i].SharedTokens = uint32(w.kv.shared(b))
	}
}

// BoundsKV reports whether the KV bounds what a worker has at a time, so that a Query needs Holds.
func (p *Pool) BoundsKV() bool { return p.set.Load().MaxKVUse > 0 }

// MaxWait returns the limit of the prefill queued at a worker in seconds; 0 = no limit.
func (p *Pool) MaxWait() float64 { return p.set.Load().MaxWait }

// ByKey returns the configured worker with that Key, or nil, and whether it is down.
func (p *Pool) ByKey(key uint64) (w *Worker, isDown bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w = p.fleet.keyed[key]
	return w, w != nil && w.health.State() == judge.Down
}

// Process returns the start time of a worker's process by its metrics, in seconds since 1970; 0 = not known.
func (p *Pool) Process(key uint64) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.fleet.keyed[key]; w != nil {
		return w.health.Process()
	}
	return 0
}

// ExpectProcess sets the start time that a worker's process had before this router started. If the worker's first page
// of metrics shows another, the worker has restarted meanwhile, and Caches.Restarted is called. ExpectProcess does
// nothing after the first page.
func (p *Pool) ExpectProcess(key uint64, began float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.fleet.keyed[key]; w != nil {
		w.health.ExpectProcess(began)
	}
}

// Learnt returns the learnt speed of a worker; 0 for a worker that the pool does not have.
func (p *Pool) Learnt(key uint64) (of Speed, fleet FleetSpeed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.fleet
	fleet = FleetSpeed{Seconds: f.speed.Value * f.conf.c1, Samples: f.speed.Samples}
	if w := f.keyed[key]; w != nil {
		of = Speed{Rel: w.speed.Times(), Evidence: w.speed.Evidence}
	}
	return of, fleet
}

// RelearnFleet starts with the fleet's speed that an earlier process has learnt. It does nothing after the first
// sample. The speed weighs as many samples as it rests on, but 50 at most: if it is wrong now, new samples correct it
// soon.
func (p *Pool) RelearnFleet(s FleetSpeed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := &p.fleet
	if f.speed.Samples == 0 && s.Samples > 0 && s.Seconds > 0 {
		f.speed = measure.FleetSlowness{Value: measure.Bound(s.Seconds / f.conf.c1), Samples: min(s.Samples, 50)}
	}
}

// Relearn starts with a worker's speed that an earlier process has learnt. It does nothing after the first sample.
func (p *Pool) Relearn(key uint64, s Speed) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.fleet.keyed[key]; w != nil && w.speed.Evidence == 0 && s.Rel > 0 {
		w.speed.Rel, w.speed.Evidence = measure.Bound(s.Rel), max(0, s.Evidence)
	}
}

// Listings returns the model lists of the workers that are up and inside of the fence, each list once.
func (p *Pool) Listings(fence Fence) []List {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fleet.lists(fence)
}

// Models returns the entries of these lists, one for each id.
func (p *Pool) Models(fence Fence) (out []json.RawMessage) {
	seen := map[string]bool{}
	for _, l := range p.Listings(fence) {
		for i, id := range l.IDs {
			if !seen[id] {
				seen[id] = true
				out = append(out, l.Entries[i])
			}
		}
	}
	return out
}

// Length returns the max_model_len that a worker lists for a model, 0 if it is not known.
func (p *Pool) Length(w *Worker, model string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.listing == nil {
		return 0
	}
	return w.listing.Length(model)
}

// Est returns the estimated seconds of prefill of the request, on a worker of slowness 1.
func (t *Ticket) Est() float64 { return t.request.est }

// Stays reports whether the worker's KV cache keeps what the request leaves there: since it was sent, the cache was not
// emptied, nor is taken to be, as somebody else has brought other weights. A stream may end a moment after its worker
// was emptied.
func (t *Ticket) Stays() bool { return int64(t.request.Sent) >= t.worker.emptied.Load() }

// Rested reports whether the worker is paused or asleep, or has been since the request was sent.
func (t *Ticket) Rested() bool {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return t.worker.engine.Rested(t.request.Sent)
}

// Rests reports whether the worker is paused or asleep, or has been since the last byte of the answer.
func (t *Ticket) Rests() bool {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	return t.worker.engine.Rested(t.request.LastByte())
}

// Ahead returns how many seconds of other requests' prefill the worker does at least before it begins with this one. 0:
// it may be at it, or have done it.
func (t *Ticket) Ahead(now time.Time) float64 {
	p, w := t.pool, t.worker
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.fleet.clock(now)
	p.fleet.settle(w, at)
	return w.queue.ahead(&t.request, at, p.fleet.speed.Value*w.speed.Times())
}

// FirstByte records the first byte of an answer that the model made. For an error call only End: its time does not
// measure prefill.
func (t *Ticket) FirstByte(now time.Time) {
	p, w, r := t.pool, t.worker, &t.request
	at := p.fleet.clock(now)
	t.Flow(now)
	p.mu.Lock()
	defer p.unlockWithRoom()
	if r.First > 0 || r.Ended {
		return
	}
	r.First = at
	if w.health.Answers() {
		p.fleet.noteAll(w.ranks, event{kind: paired}, at)
	}
	defer p.fleet.moved(w, at)
	p.fleet.settle(w, at)
	if r.Away { // its time was another worker's
		w.queue.passed(r, at)
		return
	}
	if w.engine.Rested(r.Sent) { // its time is the pause's
		w.queue.passed(r, at)
		return
	}
	w.queue.firstByte(r, at)
	if !r.Whole {
		took := max(0, (at - r.Sent).Seconds())
		w.ttft.Add(took)
		if r.quick {
			w.signs.Note(&w.signs.Quick, took, at)
		}
	}
}

// Flow records that bytes of the answer came. It costs two atomic stores: call it for each chunk.
func (t *Ticket) Flow(now time.Time) {
	t.worker.health.Flow(&t.request.Request, now.Sub(t.pool.fleet.began)) // not the time of day, which may jump
}

// Silent reports whether the holder has not been called and never will be. Call it only after End.
func (t *Ticket) Silent() bool { return t.request.Ended && !t.request.Called }

// Excuse takes back what End has counted against the worker for an outcome of that kind: another worker has failed the
// same request in the same way, so that the fault is the request's.
func (t *Ticket) Excuse(k judge.Kind, now time.Time) {
	t.pool.mu.Lock()
	defer t.pool.unlock()
	w := t.worker
	if w.place == configured && w.health.Acquit(&t.request.Request, k, t.pool.fleet.clock(now)) {
		t.pool.fleet.noteAll(w.ranks, event{kind: acquitted}, t.pool.fleet.clock(now))
	}
}

// Confirm counts an outcome against the worker that needs a comparison: another worker has accepted the same request.
// It does nothing for the other kinds, which End has counted.
func (t *Ticket) Confirm(o judge.Outcome, now time.Time) {
	t.pool.mu.Lock()
	defer t.pool.unlock()
	if w := t.worker; w.place == configured {
		at := t.pool.fleet.clock(now)
		v := w.health.Confirm(&t.request.Request, &o, at)
		t.pool.fleet.carryOut(w, &t.request, &v, at)
	}
}

// Elsewhere reports whether a worker at another address takes the request now, and has room as far as its own refusals
// show.
func (t *Ticket) Elsewhere(now time.Time) bool {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	f, at := &t.pool.fleet, t.pool.fleet.clock(now)
	return slices.ContainsFunc(f.workers, func(w *Worker) bool {
		return f.mayTake(w, &t.request, t.worker.endpoint, at) && w.health.HasRoom(w.endpoint.present(), at)
	})
}

// compareEach is how often a pool compares a refusal of a trusted worker, too: the first refusal of one that has lost
// its key or its model comes as if from nowhere.
const compareEach = time.Second

// Doubtful reports whether a refusal of the worker is to be compared with another worker's answer: it has accepted no
// request of the class yet, or has refused the one before, or is set aside for its refusals. One refusal a second of
// trusted workers is compared.
func (t *Ticket) Doubtful(now time.Time) bool {
	t.pool.mu.Lock()
	defer t.pool.mu.Unlock()
	f, e := &t.pool.fleet, t.worker.endpoint
	if e.health.IsDoubtful(t.request.Class) {
		return true
	}
	at := f.clock(now)
	if f.compared > 0 && at < f.compared+compareEach {
		return false
	}
	f.compared = at
	return true
}

// Survived reports whether the process at the worker with that Key lived on after that time, as its health checks and
// its metrics since then show. Where several processes share the URL they show nothing: another process may answer
// them.
func (p *Pool) Survived(key uint64, at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fleet.keyed[key]
	return w != nil && w.health.Survived(p.fleet.clock(at))
}

// Settled reports whether health checks have shown since that time what became of the process at the worker with that
// Key.
func (p *Pool) Settled(key uint64, at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.fleet.keyed[key]
	return w == nil || w.health.Settled(p.fleet.clock(at))
}

// End counts the request down. Only the first call does anything.
func (t *Ticket) End(now time.Time, o judge.Outcome) {
	p, w, r := t.pool, t.worker, &t.request
	at := p.fleet.clock(now)
	if o.Kind == judge.Answered {
		t.Flow(now)
	}
	p.mu.Lock()
	defer p.unlockWithRoom()
	if r.Ended {
		return
	}
	r.Ended = true
	w.end(r, o, at)
	p.fleet.weighOutput(w, at)
	p.fleet.moved(w, at)
	p.fleet.places.End(r.Sent, r.talks, o.Kind == judge.Answered || o.Kind == judge.Canceled, at)
	if w.place == configured {
		p.fleet.outcome(w, r, at, o)
		return
	}
	w.health.DropTrial(&r.Request) // a rank that is gone leaves no trial behind at its endpoint
	if p.fleet.release(w) {
		p.fleet.note(w, event{kind: released}, at)
	}
}
