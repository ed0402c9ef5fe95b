package world

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/traffic"
	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
)

// world is one run while it lasts.
type world struct {
	Config
	clock
	machines []*machine
	routers  []Router
	told     []told // by router
	chance   *rand.Rand
	run      *trial.Run
	waiting  []*chat // of a closed loop, that nobody has begun
	left     int     // requests that have not ended
	total    int
	follow   bool // some router wants KV events
	text     []byte
	progress Progress
	gaps     gaps
	err      error
}

// patience is the simulated time after the last begin of a chat within which a run must end.
const patience = 7 * 24 * time.Hour

// Progress is shown how many requests of a run have ended.
type Progress interface {
	Show(done, total int)
}

// Run simulates a load until each request has ended. make gives the routers, each by its number. progress is shown
// now and then, and may be nil.
func Run(ctx context.Context, c Config, make func(router int) (Router, error), progress Progress) (*trial.Run, error) {
	c, err := c.complete()
	if err != nil {
		return nil, err
	}
	w := &world{Config: c, run: new(trial.Run), chance: rand.New(rand.NewPCG(c.Seed, 0x5011)), progress: progress}
	defer func() {
		for _, r := range w.routers {
			r.Close()
		}
	}()
	for i := range c.Routers {
		r, err := make(i)
		if err != nil {
			return nil, err
		}
		w.routers, w.told = append(w.routers, r), append(w.told, told{})
		w.follow = w.follow || r.Follows()
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	if err := w.loop(ctx); err != nil {
		return nil, err
	}
	w.sum()
	return w.run, nil
}

// begin starts the workers and plans what is known to come.
func (w *world) begin() error {
	w.Engine.Changes = w.follow
	if w.Gaps {
		w.Engine.Gap = w.gaps.add
	}
	for i := range w.Workers {
		m := &machine{number: i, config: w.Engine}
		w.machines = append(w.machines, m)
		if !w.isLate(i) {
			if err := w.raise(m); err != nil {
				return err
			}
		}
		w.at(w.Scrape*time.Duration(i+1)/time.Duration(w.Workers), func() { w.scrapeOften(m) })
	}
	w.tick()
	for _, f := range w.Fates {
		w.at(f.At, func() { w.befall(f) })
	}
	if w.Sync.Every > 0 {
		w.at(w.Sync.Every, func() { w.sync(1) })
	}
	w.total = w.Load.Requests()
	w.left = w.total
	for i := range w.Load.Chats {
		c := &chat{Chat: &w.Load.Chats[i]}
		n := len(c.Turns)
		c.ended, c.sent, c.worker, c.left = make([]bool, n), make([]bool, n), make([]int, n), n
		if w.Load.Clients > 0 {
			w.waiting = append(w.waiting, c)
		} else {
			w.at(c.Start, func() { w.advance(c) })
		}
	}
	for i := range w.Load.Clients {
		w.at(time.Duration(i)*clientGap, w.beginNext)
	}
	return nil
}

// clientGap is the time between the first chats of two clients: all at once would be a burst that no steady load has.
const clientGap = 100 * time.Millisecond

// beginNext lets a client of a closed loop begin the next chat, if any is left.
func (w *world) beginNext() {
	if len(w.waiting) > 0 {
		c := w.waiting[0]
		w.waiting = w.waiting[1:]
		w.advance(c)
	}
}

// loop lets things happen until all requests have ended.
func (w *world) loop(ctx context.Context) error {
	last := time.Duration(0)
	if n := len(w.Load.Chats); n > 0 {
		last = w.Load.Chats[n-1].Start
	}
	for n := 0; w.left > 0 && w.err == nil; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		at, planned := w.next()
		m := w.earliest()
		switch {
		case m != nil && (!planned || m.next <= at):
			w.now = max(w.now, m.next)
			w.observe(m)
		case planned:
			w.step()
		}
		if w.now > last+patience {
			return fmt.Errorf("world: %d requests have not ended a week after the last one came; "+
				"the load is far over what the fleet can do", w.left)
		}
	}
	return w.err
}

// earliest returns the worker whose engine has something to report next, nil if none has.
func (w *world) earliest() (first *machine) {
	for _, m := range w.machines {
		if m.pending && (first == nil || m.next < first.next) {
			first = m
		}
	}
	return first
}

// advance sends the turns of a chat whose time has come, or plans them.
func (w *world) advance(c *chat) {
	for i := range c.Turns {
		t := &c.Turns[i]
		if c.sent[i] || !c.ready(t) {
			continue
		}
		c.sent[i] = true
		if t.Gap > 0 {
			w.at(w.now+t.Gap, func() { w.arrive(c, i) })
		} else {
			w.arrive(c, i)
		}
	}
}

// ready reports whether all turns that t waits for have ended.
func (c *chat) ready(t *traffic.Turn) bool {
	for _, k := range t.After {
		if !c.ended[k] {
			return false
		}
	}
	return true
}

// arrive lets a turn come to a router.
func (w *world) arrive(c *chat, turn int) {
	q := &Request{Chat: c.Chat, Turn: &c.Turns[turn], chat: c, turn: turn}
	session := cmp.Or(q.Turn.Session, c.Session)
	q.Request = trial.Request{ID: len(w.run.Outcomes), Session: session, Parent: q.Turn.Parent, Turn: turn,
		Tenant: c.Tenant, Prompt: q.Turn.Tokens(), MaxTokens: q.Turn.Output, BlockTokens: w.Engine.BlockTokens}
	w.run.Outcomes = append(w.run.Outcomes, trial.Outcome{Arrived: w.now, Worker: -1, Session: session, Turn: turn,
		Tenant: c.Tenant, Prompt: q.Prompt})
	if len(w.routers) > 1 {
		draw := w.chance.Uint64()
		if w.Split == BySession {
			draw = c.Session * 0x9e3779b97f4a7c15 >> 32
		}
		q.router = int(draw % uint64(len(w.routers)))
	}
	w.send(q)
}

// send has a router place a request.
func (w *world) send(q *Request) {
	w.text = traffic.AppendText(w.text[:0], q.Turn.Parts)
	q.IDs = traffic.AppendTokens(nil, w.text)
	q.seq = engine.NewSequence(q.IDs, "", 0, w.Engine.BlockTokens)
	q.seq.Owner, q.seq.MaxTokens, q.seq.Reply = q, q.MaxTokens, engine.NewReply(q.Turn.Answer)
	q.Chain = q.seq.Hashes()
	q.Chain = q.Chain[:len(q.Chain):len(q.Chain)]
	number, p := w.routers[q.router].Choose(w.now, q, w.text)
	w.called(q.router)
	if p == Waits {
		q.waits = w.now
		return
	}
	w.place(q, number, p)
}

// place submits a request to the worker that its router has chosen, or ends it.
func (w *world) place(q *Request, number int, p Placement) {
	o := &w.run.Outcomes[q.ID]
	if p == Refused {
		o.Status = trial.Refused
		w.finish(q)
		return
	}
	w.note(q, number)
	o.Worker = number
	o.Attempts++
	m := w.machines[number]
	if m.engine == nil {
		w.err = fmt.Errorf("world: a router sent request %d to worker %d, which is down", q.ID, number)
		return
	}
	if r, pairs := w.routers[q.router].(Pairer); pairs {
		if number := r.Prefiller(w.now, q); number >= 0 {
			w.prefill(q, m, number)
			return
		}
	}
	if err := m.submit(w.now, q); err != nil {
		w.err = fmt.Errorf("world: request %d does not fit: %w", q.ID, err)
	}
}

// prefill has a worker compute the prompt of a request, which goes on to another one behind that.
func (w *world) prefill(q *Request, answers *machine, number int) {
	m := w.machines[number]
	if m.engine == nil || m == answers {
		w.err = fmt.Errorf("world: a router had worker %d compute the prompt of request %d, which is down or answers it",
			number, q.ID)
		return
	}
	q.leg = &leg{request: q, answers: answers, machine: m}
	seq := &q.leg.seq
	*seq = engine.NewSequence(q.IDs, "", 0, w.Engine.BlockTokens)
	seq.Owner, seq.MaxTokens, seq.Reply, seq.Keep = q.leg, 1, engine.NewReply(q.Turn.Answer), true
	m.sums.Requests++
	w.run.Prefills++
	if err := m.engine.Submit(w.now-m.began, seq); err != nil {
		w.err = fmt.Errorf("world: the prompt of request %d does not fit: %w", q.ID, err)
		return
	}
	m.plan()
}

// handOver sends a request whose prompt is computed to the worker that answers, which loads the KV first.
func (w *world) handOver(l *leg) {
	q, o := l.request, &w.run.Outcomes[l.request.ID]
	q.started = true
	o.Cached = l.seq.CachedTokens()
	o.CPU, o.Shared = l.seq.Loaded()
	w.routers[q.router].(Pairer).Prefilled(w.now, q, o.Cached)
	w.called(q.router)
	q.seq.Remote = q.Prompt
	if err := l.answers.submit(w.now, q); err != nil {
		w.err = fmt.Errorf("world: request %d does not fit: %w", q.ID, err)
	}
}

// note adds a choice to the hash of all, and counts a chat that moves.
func (w *world) note(q *Request, worker int) {
	for _, x := range [...]uint64{uint64(q.ID), uint64(worker), uint64(w.now)} {
		w.run.Decisions = engine.Mix(w.run.Decisions^x, 0x9e3779b97f4a7c15)
	}
	if after := q.Turn.After; len(after) > 0 && q.chat.worker[after[0]] != worker {
		w.run.Moved++
	}
	q.chat.worker[q.turn] = worker
}

// observe takes what a worker's engine has to report.
func (w *world) observe(m *machine) {
	events := m.engine.Advance(w.now - m.began)
	w.announce(m)
	for _, ev := range events {
		if l, is := ev.Seq.Owner.(*leg); is {
			if ev.Kind == engine.Finished {
				w.handOver(l)
			}
			continue
		}
		if move, is := ev.Seq.Owner.(*Move); is {
			if ev.Kind == engine.Finished {
				w.endMove(m, move, true)
			}
			continue
		}
		q := ev.Seq.Owner.(*Request)
		o := &w.run.Outcomes[q.ID]
		switch ev.Kind {
		case engine.Admitted:
			if !q.started {
				q.started = true
				o.Cached = q.seq.CachedTokens()
				o.CPU, o.Shared = q.seq.Loaded()
			}
		case engine.FirstToken:
			q.first = true
			q.leg.release()
			o.First, o.Behind = m.began+ev.At, q.seq.Behind()
			w.routers[q.router].First(w.now, q)
			w.called(q.router)
		case engine.Finished:
			m.drop(q)
			if q.leg != nil {
				w.run.Handed += int64(q.seq.CachedTokens())
			}
			o.Ended, o.Output = m.began+ev.At, q.seq.OutputTokens()
			w.routers[q.router].End(w.now, q, trial.End{Status: trial.Answered, Output: o.Output,
				Cached: q.cached(o), Chain: q.seq.Hashes()})
			w.called(q.router)
			w.finish(q)
		}
	}
	m.plan()
}

// announce gives the routers that follow KV events what changed in a worker's caches.
func (w *world) announce(m *machine) {
	if !w.follow {
		return
	}
	batches := m.engine.TakeBatches()
	if len(batches) == 0 {
		return
	}
	for _, r := range w.routers {
		if r.Follows() {
			r.Changed(w.now, m.number, batches)
		}
	}
}

// finish counts the end of a request, and lets its chat go on.
func (w *world) finish(q *Request) {
	o := &w.run.Outcomes[q.ID]
	if o.Ended == 0 {
		o.Ended = w.now
	}
	w.run.Ended = max(w.run.Ended, o.Ended)
	c := q.chat
	c.ended[q.turn] = true
	c.left--
	w.left--
	q.IDs, q.Chain, q.machine, q.leg = nil, nil, nil, nil
	if w.progress != nil && (w.left%128 == 0) {
		w.progress.Show(w.total-w.left, w.total)
	}
	// The next turn is planned, not sent, so that an engine's list of events stays valid.
	if c.left > 0 {
		w.at(w.now, func() { w.advance(c) })
	} else if w.Load.Clients > 0 {
		w.at(w.now, w.beginNext)
	}
}

// sum adds up what the workers did.
func (w *world) sum() {
	for _, m := range w.machines {
		m.settle(w.now)
		w.run.Workers = append(w.run.Workers, m.sums)
		w.run.GPUSeconds += m.sums.UpSeconds * w.GPUs
	}
	for _, r := range w.routers {
		w.run.Add(r.Remarks())
	}
	w.run.ITLP50, w.run.ITLP99 = w.gaps.quantile(.5), w.gaps.quantile(.99)
	w.run.Seed = w.Seed
}
