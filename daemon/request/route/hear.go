package route

import (
	"time"

	"github.com/warmpath/warmpath/cache/prefix"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/relocate"
)

// Heard is a request that another router sent to a worker of this pool. Its methods do to the pool's books what a
// [Trip] of its own would have done, but learn no speeds. They are not safe for concurrent use of one Heard.
type Heard struct {
	pool    *Pool
	sent    Sent
	at      time.Time
	first   time.Time // zero: none has come
	foreign *worker.Foreign
}

// Outcome is when another router sent a request, and what became of it so far, in one message. Zero times: not known
// yet.
type Outcome struct {
	At       time.Time // it was sent
	First    time.Time // the first byte came
	Answered time.Time // the worker held the prompt, which is the only one, with its answer
	Prompt   int       // blocks of that chain that are the prompt's
	Ended    bool
}

// Hear enters a request that another router sent: its prompts in the index, and the request in flight if live.
// [Heard.Begin] may count it in flight later. now is when this router learns of it. Hear returns nil if the request has
// ended. A worker that is unknown or down has no books: its Heard does nothing.
func (p *Pool) Hear(s *Sent, o *Outcome, chains [][]uint64, live bool, now time.Time) *Heard {
	w := p.upByKey(s.Worker)
	for _, chain := range chains {
		held, asked := o.At, chain
		if !o.Answered.IsZero() {
			held, asked = o.Answered, chain[:o.Prompt]
		}
		if w != nil {
			p.recall(w, s.Space, chain, now.Sub(held))
		}
		if !s.Again {
			p.reuse.NoteAgo(asked, s.Block, now.Sub(o.At))
		}
	}
	if len(chains) == 1 {
		t := relocate.Turn{Hashes: chains[0], Tokens: s.Tokens, Moves: s.Moves}
		if !o.Answered.IsZero() {
			t.Hashes = t.Hashes[:o.Prompt]
		}
		if w != nil {
			t.Worker = w.ID()
		}
		p.Book.Answered(&t, o.At)
	}
	if o.Ended {
		if live {
			p.Workers.PassForeign(s.Worker, s.dispatch(), o.At, o.First)
		}
		return nil
	}
	h := &Heard{pool: p, sent: *s, at: o.At}
	if live {
		h.begin(true)
	}
	if !o.First.IsZero() {
		h.FirstByte(o.First)
	}
	return h
}

// Recall enters in the index that a worker held a chain at a time. It reports whether there is such a worker that is
// not down.
func (p *Pool) Recall(key, space uint64, chain []uint64, at, now time.Time) bool {
	w := p.upByKey(key)
	if w != nil {
		p.recall(w, space, chain, now.Sub(at))
	}
	return w != nil
}

func (p *Pool) recall(w *worker.Worker, space uint64, chain []uint64, ago time.Duration) {
	p.Index.Space(space).TouchAgo(w.Slot(), chain, ago)
	below := p.lower.spaces(space)
	below.touch(w, chain, ago)
}

// upByKey returns the worker with that Key, nil if there is none or it is down.
func (p *Pool) upByKey(key uint64) *worker.Worker {
	w, down := p.Workers.ByKey(key)
	if down {
		return nil
	}
	return w
}

// Begin counts in flight a request that the pool learns of long after it was sent. It does nothing if the request
// already counts.
func (h *Heard) Begin() {
	if h.foreign != nil {
		return
	}
	h.begin(false)
	if h.foreign != nil && !h.first.IsZero() {
		h.foreign.FirstByte(h.first)
	}
}

func (h *Heard) begin(seen bool) {
	h.foreign = h.pool.Workers.BeginForeign(h.sent.Worker, h.sent.dispatch(), seen, h.at)
}

// Sent returns the request as the other router described it, and when it was sent.
func (h *Heard) Sent() (*Sent, time.Time) { return &h.sent, h.at }

// FirstByte records when the first output came.
func (h *Heard) FirstByte(at time.Time) {
	h.first = at
	if h.foreign != nil {
		h.foreign.FirstByte(at)
	}
}

// Answer enters a prompt with its answer.
func (h *Heard) Answer(space uint64, chain []uint64, at, now time.Time) {
	h.pool.Recall(h.sent.Worker, space, chain, at, now)
}

// End counts the request down. Only the first call does anything.
func (h *Heard) End() {
	if h.foreign != nil {
		h.foreign.End()
	}
}

// Forget drops what the pool believes of the cache of a worker: another router has seen its process end.
func (p *Pool) Forget(key uint64) {
	if w, _ := p.Workers.ByKey(key); w != nil {
		p.Index.Remove(w.Slot())
		p.lower.cpu.index.Remove(w.Slot())
	}
}

// Learnt is what a pool has learnt of a worker and hands to the next process.
type Learnt struct {
	KVTokens int     // of its KV cache, from its metrics or the configuration; 0 = not known
	Process  float64 // when its process began, in seconds since 1970; 0 = not known
	Speed    worker.Speed
}

// Learnt returns what the pool has learnt of a worker.
func (p *Pool) Learnt(key uint64) (l Learnt) {
	w, _ := p.Workers.ByKey(key)
	if w == nil {
		return l
	}
	l.Process = p.Workers.Process(key)
	l.Speed, _ = p.Workers.Learnt(key)
	if n, known := p.caps.tokens(w.Slot()); known {
		l.KVTokens = n
	}
	return l
}

// Relearn starts with what an earlier process has learnt of a worker. The worker's own metrics come first.
func (p *Pool) Relearn(key uint64, l *Learnt) {
	w, _ := p.Workers.ByKey(key)
	if w == nil {
		return
	}
	p.Workers.ExpectProcess(key, l.Process)
	p.Workers.Relearn(key, l.Speed)
	if _, known := p.caps.tokens(w.Slot()); !known {
		p.caps.set(w.Slot(), l.KVTokens)
	}
	p.fitWorker(w.Slot())
}

// Experience is what a pool has learnt of its traffic and of all its workers and hands to the next process.
type Experience struct {
	TokensPerByte float64 // of prompt text
	Speed         worker.FleetSpeed
	Reuse         prefix.Gaps
}

// Experience returns what the pool has learnt.
func (p *Pool) Experience() (e Experience) {
	_, e.Speed = p.Workers.Learnt(0)
	e.TokensPerByte, e.Reuse = p.scale.tokensPerByte(), p.reuse.Gaps()
	return e
}

// Relearnt starts with another process's experience. A part of it that the pool has already learnt by itself, or that
// no samples can make, does nothing.
func (p *Pool) Relearnt(e *Experience) {
	p.scale.start(e.TokensPerByte)
	p.Workers.RelearnFleet(e.Speed)
	p.reuse.Start(&e.Reuse)
}
