package engine

import "time"

// planLoad finds what the tiers hold behind the cached blocks of a sequence. Like vLLM's connectors it stops at the
// first chunk that no tier has. The CPU tier is asked first. What another engine has computed for the sequence comes
// from there instead.
func (s *scheduler) planLoad(q *Sequence) (l fetch) {
	if blocks := min(q.Remote/q.blockSize, q.lookups()) - len(q.blocks); blocks > 0 {
		return fetch{blocks: blocks, remote: blocks * q.blockSize, asked: true}
	}
	if s.cpu == nil && s.cfg.Shared == nil {
		return l
	}
	l.asked = true
	chunk := s.cfg.ChunkTokens / s.cfg.BlockTokens
	held := len(q.blocks)
	k := held / chunk
	for ; (k+1)*chunk <= q.lookups(); k++ {
		hash := q.hashes[(k+1)*chunk-1]
		tokens := ((k+1)*chunk - held - l.blocks) * q.blockSize
		from := &l.cpu
		weights, ok := s.cpu.touch(hash)
		if !ok {
			from = &l.shared
			weights, ok = s.cfg.Shared.touch(hash)
		}
		if !ok {
			break
		}
		*from += tokens
		if weights != s.pool.weights {
			l.stale += tokens
			l.weights = weights
		}
		l.blocks = (k+1)*chunk - held
	}
	for k--; k >= 0; k-- { // a prefix outlives its continuation
		s.cpu.touch(q.hashes[(k+1)*chunk-1])
		s.cfg.Shared.touch(q.hashes[(k+1)*chunk-1])
	}
	return l
}

// startLoad gives a sequence the blocks for its whole prompt and begins to fill those that the tiers hold. Meanwhile
// others compute, as with vLLM's offloading connector. That one asks for the rest of the blocks when the load is done;
// here they are taken at once, so that two loads never wait for each other's blocks.
func (s *scheduler) startLoad(q *Sequence, now time.Duration) {
	q.blocks = s.pool.pop(q.blocksFor(q.length())-len(q.blocks), q.blocks)
	seconds := float64(q.load.cpu)*s.cfg.CPUSeconds + float64(q.load.shared)*s.cfg.SharedSeconds +
		float64(q.load.remote)*s.cfg.RemoteSeconds
	s.link = max(s.link, now) + time.Duration(seconds*float64(time.Second))
	q.load.ready = s.link
	q.state = loading
	s.loading = append(s.loading, q)
}

// serveLoaded lets the sequences run whose loads are done, in order.
func (s *scheduler) serveLoaded(budget *int, now time.Duration) {
	for len(s.loading) > 0 && *budget > 0 {
		q := s.loading[0]
		if q.load.ready > now {
			return
		}
		s.loading = s.loading[1:]
		q.done += q.load.blocks * q.blockSize
		s.enter(q, q.done/q.blockSize)
		if q.load.stale > 0 {
			for _, b := range q.blocks[q.done/q.blockSize-q.load.blocks : q.done/q.blockSize] {
				s.pool.blocks[b].weights = q.load.weights
			}
		}
		n := min(q.length()-q.done, *budget)
		if !s.allocate(q, n) {
			panic("BUG: engine: no block for a loaded sequence")
		}
		*budget -= n
		q.state = running
		s.running = append(s.running, q)
		s.step.shares = append(s.step.shares, share{q, n})
	}
}

// nextStart returns when an engine that runs nothing can start a step. It returns false if nothing is to come.
func (s *scheduler) nextStart() (at time.Duration, ok bool) {
	if s.paused != Going {
		return 0, false
	}
	if len(s.waiting) > 0 && !s.step.blocked {
		at = s.waiting[0].times.Arrived
		ok = true
	}
	if len(s.loading) > 0 && (!ok || s.loading[0].load.ready < at) {
		at = s.loading[0].load.ready
		ok = true
	}
	return at, ok
}

// save offers the computed chunks of a sequence to the tiers, as vLLM's offloading does after each step, whether the
// GPU will forget them or not.
func (s *scheduler) save(q *Sequence) {
	if s.cpu == nil && s.cfg.Shared == nil {
		return
	}
	chunk := s.cfg.ChunkTokens / s.cfg.BlockTokens
	from := q.saved // of the chunks that are new to the CPU tier and not recorded
	for ; (q.saved+1)*chunk*q.blockSize <= q.done; q.saved++ {
		hash := q.hashes[(q.saved+1)*chunk-1]
		weights := s.pool.blocks[q.blocks[(q.saved+1)*chunk-1]].weights
		s.cfg.Shared.put(hash, weights)
		fresh, dropped := s.cpu.put(hash, weights)
		if !fresh {
			s.pool.log.saved(q, from, q.saved, chunk)
			from = q.saved + 1
		}
		if len(dropped) > 0 {
			s.pool.log.saved(q, from, q.saved, chunk)
			from = q.saved
			s.pool.log.removed(OnCPU, dropped...)
		}
	}
	s.pool.log.saved(q, from, q.saved, chunk)
}

// reset forgets all that is cached, and with external what the tiers hold too. With preempt all sequences are sent back
// to wait first. It returns false if one holds a block.
func (s *scheduler) reset(preempt, external bool, now time.Duration) bool {
	for preempt && len(s.running) > 0 {
		s.preempt(s.running[len(s.running)-1], now)
	}
	for preempt && len(s.loading) > 0 {
		q := s.loading[len(s.loading)-1]
		s.loading = s.loading[:len(s.loading)-1]
		s.sendBack(q)
		s.journal.preempted(q, now)
	}
	if !s.pool.reset(external) {
		return false
	}
	s.step.blocked = false
	if external {
		s.cpu.Clear()
		s.cfg.Shared.Clear()
	}
	return true
}
