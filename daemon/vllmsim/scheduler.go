package vllmsim

import "time"

// item is a sequence's share of an engine step.
type item struct {
	seq *sequence
	n   int // tokens to compute
}

// step is the engine step that is being computed.
type step struct {
	active   bool
	end      time.Duration // simulated
	items    []item
	prefills int  // items that are not decodes
	blocked  bool // the head of the waiting queue did not fit in
}

// schedule fills the step that starts now, as vLLM's scheduler does: the running ones first, in order, each with what it
// still has to compute or what is left of the budget; whoever finds no KV block preempts the last; then, if nobody was
// preempted, the waiting ones in order until one does not fit. False: there is nothing to compute.
func (e *engine) schedule(now time.Duration) bool {
	s := &e.step
	s.items, s.prefills, s.blocked = s.items[:0], 0, false
	budget := e.cfg.MaxBatchedTokens
	preempted := e.scheduleRunning(&budget)
	if !preempted {
		e.scheduleWaiting(&budget, now)
	}
	if len(s.items) == 0 {
		return false
	}
	var work float64
	decodes := 0
	for _, it := range s.items {
		if it.seq.decoding(it.n) {
			decodes++
			continue
		}
		s.prefills++
		work += prefillCost(it.n, it.seq.done)
		e.counts.ComputedTokens += int64(it.n)
	}
	e.counts.PrefillSeconds += work * e.cfg.Slowness
	e.counts.Steps++
	s.active, s.end = true, now+stepCost(work, decodes, e.cfg.Slowness)
	return true
}

func (e *engine) scheduleRunning(budget *int) (preempted bool) {
	for i := 0; i < len(e.running) && *budget > 0; i++ {
		q := e.running[i]
		n := min(q.tokens()-q.done, *budget)
		for !e.allocate(q, n) {
			victim := e.running[len(e.running)-1]
			e.preempt(victim)
			preempted = true
			if victim == q {
				return true
			}
		}
		*budget -= n
		e.step.items = append(e.step.items, item{q, n})
	}
	return preempted
}

func (e *engine) scheduleWaiting(budget *int, now time.Duration) {
	for len(e.waiting) > 0 && *budget > 0 {
		q := e.waiting[0]
		if q.arrived > now {
			return
		}
		if len(e.running) >= e.cfg.MaxSeqs || !e.admit(q, budget, now) {
			e.step.blocked = true
			return
		}
		e.waiting = e.waiting[1:]
	}
}

// admit starts a waiting sequence on what is cached of it. The whole prompt must fit into the free blocks, as vLLM demands
// by default of late: else long prompts are admitted chunk by chunk only to preempt each other.
func (e *engine) admit(q *sequence, budget *int, now time.Duration) bool {
	held, idle := e.pool.match(q.hashes[:q.cacheable()], e.scratch[:0])
	e.scratch = held
	if q.blocksFor(q.tokens())-len(held)+idle > e.pool.free {
		return false
	}
	e.pool.touch(held)
	q.blocks = append(q.blocks[:0], held...)
	q.entered = len(held)
	q.done = len(held) * q.block
	n := min(q.tokens()-q.done, *budget)
	if !e.allocate(q, n) {
		panic("BUG: vllmsim: no block for an admitted sequence")
	}
	*budget -= n
	q.state = running
	e.running = append(e.running, q)
	e.step.items = append(e.step.items, item{q, n})
	if q.preempt > 0 {
		return true
	}
	q.admitted = now
	q.hit.Store(int32(q.done))
	e.counts.Queries += int64(q.tokens())
	e.counts.CachedTokens += int64(q.done)
	e.queueTime.observe((now - q.arrived).Seconds())
	return true
}

// allocate gives a sequence the blocks for its next n tokens and enters those that will be full then. Like vLLM it enters
// them before they are computed: a later sequence of the same step may use them.
func (e *engine) allocate(q *sequence, n int) bool {
	need := q.blocksFor(q.done+n) - len(q.blocks)
	if need > e.pool.free {
		return false
	}
	if need > 0 {
		q.blocks = e.pool.take(need, q.blocks)
	}
	for full := (q.done + n) / q.block; q.entered < full; q.entered++ {
		e.pool.enter(q.blocks[q.entered], q.hashes[q.entered])
	}
	return true
}

// preempt sends the last running sequence back to the head of the waiting ones; it will be computed anew, bar what is
// still cached of it then.
func (e *engine) preempt(q *sequence) {
	e.running = e.running[:len(e.running)-1]
	e.pool.release(q.blocks)
	q.blocks, q.done, q.entered = q.blocks[:0], 0, 0
	q.state = waiting
	q.preempt++
	e.waiting = append([]*sequence{q}, e.waiting...)
	e.counts.Preemptions++
}

// complete ends the step: whoever has computed all its tokens gets the next one.
func (e *engine) complete() {
	s := &e.step
	s.active = false
	e.clock = s.end
	ended := false
	for _, it := range s.items {
		q := it.seq
		if q.state != running {
			continue // aborted meanwhile
		}
		q.done += it.n
		if q.done < q.tokens() {
			continue
		}
		q.sample()
		e.observeToken(q)
		if q.left() <= 0 {
			ended = true
			e.finish(q)
		}
	}
	if ended {
		e.running = dropGone(e.running)
	}
}

func (e *engine) finish(q *sequence) {
	end := finishLength
	if q.reply.stop >= 0 && q.output > q.reply.stop {
		end = finishStop
	}
	q.state = gone
	e.pool.release(q.blocks)
	q.blocks = nil
	e.counts.Finished[end]++
	e.latency.observe((e.clock - q.arrived).Seconds())
	e.prefillTime.observe((q.first - q.admitted).Seconds())
	e.computed.observe(float64(q.prompt - int(q.hit.Load())))
	e.tokenTime.observe((e.clock - q.first).Seconds() / float64(max(1, q.output-1)))
	q.publish(end)
}

func dropGone(list []*sequence) []*sequence {
	kept := list[:0]
	for _, q := range list {
		if q.state != gone {
			kept = append(kept, q)
		}
	}
	clear(list[len(kept):])
	return kept
}

// blocksFor is the KV blocks that so many of q's tokens take.
func (q *sequence) blocksFor(tokens int) int { return (tokens + q.block - 1) / q.block }
