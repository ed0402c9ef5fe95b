package engine

import (
	"slices"
	"time"
)

// share is what one sequence gets of a step.
type share struct {
	seq *Sequence
	n   int // tokens to compute
}

// step is the engine step that is being computed.
type step struct {
	active   bool
	end      time.Duration
	shares   []share
	prefills int           // shares that are not decodes
	blocked  bool          // the head of the waiting queue did not fit in
	aside    time.Duration // by how much longer it takes for sequences that are Aside
}

// scheduler decides step by step who computes what, as vLLM's does: the running sequences first, in order, each with
// what it still has to compute or what is left of the step's budget of tokens. A sequence that finds no KV block
// preempts the last one. Then, if none was preempted, the waiting ones are admitted in order until one does not fit.
type scheduler struct {
	cfg     *Config
	pool    *blockPool
	journal *journal
	cpu     *Tier         // nil without one
	link    time.Duration // when the last load is done: they come one after another
	waiting []*Sequence
	loading []*Sequence
	running []*Sequence
	step    step
	clock   time.Duration // end of the last step
	scratch []int32
	pinned  int // blocks that ended sequences keep
	paused  Pause

	adapters adapters
}

// advance ends the step that is over at now and starts the next one. It returns false if nothing more happens by then.
func (s *scheduler) advance(now time.Duration) bool {
	if s.step.active {
		if s.step.end > now {
			return false
		}
		s.endStep()
	}
	at := s.clock
	if s.paused == Frozen {
		return false
	}
	if len(s.running) == 0 {
		next, ok := s.nextStart()
		if !ok || next > now {
			return false
		}
		at = max(at, next)
	}
	return s.startStep(at)
}

// startStep fills the step that starts now. It returns false if there is nothing to compute and nothing new to load.
func (s *scheduler) startStep(now time.Duration) bool {
	st := &s.step
	st.shares = st.shares[:0]
	st.prefills = 0
	st.blocked = false
	budget := s.cfg.MaxBatchedTokens
	loading := len(s.loading)
	preempted := s.serveRunning(&budget, now)
	if !preempted && s.paused == Going {
		s.serveLoaded(&budget, now)
		s.serveWaiting(&budget, now)
	}
	if len(st.shares) == 0 {
		return len(s.loading) > loading
	}
	var seconds, aside float64
	others, decodes, context, tokens := 0, 0, 0, 0
	for _, sh := range st.shares {
		if !sh.seq.Aside {
			others++
		}
		if sh.seq.decodes(sh.n) {
			decodes++
			context += sh.seq.length()
			continue
		}
		st.prefills++
		took := s.cfg.Model.Prefill(sh.n, sh.seq.done)
		seconds += took
		tokens += sh.n
		if sh.seq.Aside {
			aside += took
		}
	}
	s.journal.step(seconds*s.cfg.Model.Slowness, tokens, decodes)
	st.active = true
	takes := s.cfg.Model.Step(seconds, decodes, context)
	st.aside = takes
	if others > 0 {
		st.aside -= s.cfg.Model.Step(seconds-aside, decodes, context)
	}
	st.end = now + takes + s.adapters.due
	s.adapters.due = 0
	return true
}

// serveRunning gives the running sequences their shares. It reports whether one was preempted.
func (s *scheduler) serveRunning(budget *int, now time.Duration) (preempted bool) {
	for i := 0; i < len(s.running) && *budget > 0; i++ {
		q := s.running[i]
		n := min(q.length()-q.done, *budget)
		for !s.allocate(q, n) {
			victim := s.running[len(s.running)-1]
			s.preempt(victim, now)
			preempted = true
			if victim == q {
				return true
			}
		}
		*budget -= n
		s.step.shares = append(s.step.shares, share{q, n})
	}
	return preempted
}

// serveWaiting admits the sequences that have arrived, in order, until one does not fit.
func (s *scheduler) serveWaiting(budget *int, now time.Duration) {
	next := 0 // of those whose adapter has a place: others pass one without
	for next < len(s.waiting) && *budget > 0 {
		q := s.waiting[next]
		if q.times.Arrived > now {
			break
		}
		if !s.hasPlace(q) {
			next++
			continue
		}
		if len(s.running)+len(s.loading) >= s.cfg.MaxSeqs || !s.admit(q, budget, now) {
			s.step.blocked = true
			return
		}
		s.run(q)
		if next == 0 {
			s.waiting = s.waiting[1:]
		} else {
			s.waiting = slices.Delete(s.waiting, next, next+1)
		}
	}
	s.step.blocked = next > 0
}

// admit starts a waiting sequence on what is cached of it. The whole prompt must fit into the free blocks, as vLLM
// demands by default of late: else long prompts are admitted chunk by chunk only to preempt each other.
func (s *scheduler) admit(q *Sequence, budget *int, now time.Duration) bool {
	held, idle := s.pool.match(q.hashes[:q.lookups()], s.scratch[:0])
	s.scratch = held
	if q.blocksFor(q.length())-len(held)+idle > s.pool.free {
		return false
	}
	s.pool.hold(held)
	q.blocks = append(q.blocks[:0], held...)
	q.entered = len(held)
	q.done = len(held) * q.blockSize
	if q.Report {
		s.pool.log.stored(q, 0, len(held))
	}
	q.load = s.planLoad(q)
	q.stale = q.load.stale + s.pool.computedElse(held)*q.blockSize
	s.journal.admitted(q, now)
	if q.load.blocks > 0 {
		s.startLoad(q, now)
		return true
	}
	n := min(q.length()-q.done, *budget)
	if !s.allocate(q, n) {
		panic("BUG: engine: no block for an admitted sequence")
	}
	*budget -= n
	q.state = running
	s.running = append(s.running, q)
	s.step.shares = append(s.step.shares, share{q, n})
	return true
}

// allocate gives a sequence the blocks for its next n tokens and enters those that will be full then. Like vLLM it
// enters them before they are computed: a later sequence of the same step may use them. It returns false if blocks
// are lacking.
func (s *scheduler) allocate(q *Sequence, n int) bool {
	need := q.blocksFor(q.done+n) - len(q.blocks)
	if need > s.pool.free {
		return false
	}
	if need > 0 {
		q.blocks = s.pool.pop(need, q.blocks)
	}
	s.enter(q, (q.done+n)/q.blockSize)
	return true
}

// enter makes the leading blocks of a sequence findable, up to a number.
func (s *scheduler) enter(q *Sequence, full int) {
	from := q.entered
	for ; q.entered < full; q.entered++ {
		s.pool.enter(q.blocks[q.entered], q.hashes[q.entered])
	}
	s.pool.log.stored(q, from, full)
}

// preempt sends the last running sequence back to the head of the waiting ones. It will be computed again, except the
// part that is still cached then.
func (s *scheduler) preempt(q *Sequence, now time.Duration) {
	s.running = s.running[:len(s.running)-1]
	s.sendBack(q)
	s.journal.preempted(q, now)
}

// sendBack puts a sequence without its blocks at the head of the waiting ones.
func (s *scheduler) sendBack(q *Sequence) {
	s.pool.release(q.blocks)
	q.blocks = q.blocks[:0]
	q.done = 0
	q.entered = 0
	q.Remote = 0
	q.state = waiting
	s.leave(q)
	q.preemptions++
	s.waiting = append([]*Sequence{q}, s.waiting...)
}

// endStep gives a token to each sequence that has computed all that it had.
func (s *scheduler) endStep() {
	s.step.active = false
	s.step.blocked = false
	s.clock = s.step.end
	for i := 0; i < len(s.waiting) && s.step.aside > 0; i++ {
		q := s.waiting[i]
		q.behind += min(s.step.aside, max(0, s.clock-q.times.Arrived))
	}
	finished := false
	for _, sh := range s.step.shares {
		q := sh.seq
		if q.output == 0 {
			q.behind += s.step.aside
		}
		if q.state != running {
			continue // cancelled meanwhile
		}
		q.done += sh.n
		s.save(q)
		if q.done < q.length() {
			continue
		}
		q.generate()
		q.weights[1] = s.pool.weights
		if q.output == 1 {
			q.weights[0] = s.pool.weights
		}
		s.journal.generated(q, s.clock)
		if q.left() <= 0 {
			finished = true
			s.free(q, q.ending())
			s.journal.finished(q, s.clock)
		}
	}
	if finished {
		s.running = dropEnded(s.running)
	}
	s.pool.log.seal(s.clock)
}

// free ends a sequence and gives back its blocks, unless it keeps them.
func (s *scheduler) free(q *Sequence, how Finish) {
	if q.Keep && how == FinishLength {
		s.pinned += len(q.blocks)
	} else {
		s.pool.release(q.blocks)
		q.blocks = nil
	}
	q.state = ended
	q.finish = how
	s.leave(q)
}

// remove takes out the sequences that have ended otherwise than by a step.
func (s *scheduler) remove() {
	s.running = dropEnded(s.running)
	s.loading = dropEnded(s.loading)
	s.waiting = dropEnded(s.waiting)
	s.step.blocked = false
}

func dropEnded(list []*Sequence) []*Sequence {
	kept := list[:0]
	for _, q := range list {
		if q.state != ended {
			kept = append(kept, q)
		}
	}
	clear(list[len(kept):])
	return kept
}

// nextFinish returns when the first of the running sequences will have its last token, if the steps to come last as
// long as this one.
func (s *scheduler) nextFinish() time.Duration {
	left := 1 << 30
	for _, sh := range s.step.shares {
		left = min(left, sh.seq.left())
	}
	return s.step.end + time.Duration(left-1)*(s.step.end-s.clock)
}

// run and leave count the sequences of an adapter.
func (s *scheduler) run(q *Sequence) {
	if q.Adapter != "" && !q.placed {
		s.adapters.places[s.adapters.find(q.Adapter)].running++
		q.placed = true
	}
}

func (s *scheduler) leave(q *Sequence) {
	if q.placed {
		s.adapters.places[s.adapters.find(q.Adapter)].running--
		q.placed = false
		s.step.blocked = false
	}
}

// hasPlace reports whether a sequence's adapter can run now, and brings it to its place.
func (s *scheduler) hasPlace(q *Sequence) bool {
	load := time.Duration(s.cfg.LoraSeconds * float64(time.Second))
	return q.Adapter == "" || s.cfg.MaxLoras == 0 || s.adapters.take(q.Adapter, s.cfg.MaxLoras, load)
}
