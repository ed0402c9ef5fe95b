package lmcache

import (
	"fmt"
	"time"
)

// report applies a message in which a worker reports what it holds.
func (f *fleet) report(m *message, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, err := f.find(m.instance, false, now)
	if err != nil {
		return err
	}
	fresh := i.ranks[m.worker] == nil
	r, err := f.rankOf(i, m.worker, now)
	if err != nil {
		return err
	}
	if fresh {
		r.conn = m.conn
		r.want = "worker_re_registered" // the daemon was restarted: what it held before is not known
		f.changed.Add(1)
	}
	if r.conn != m.conn {
		if f.conns[r.conn] != "" && r.reported {
			f.doubt(i, conflict, now, "connections from", f.conns[r.conn]+" and "+m.from)
		}
		r.conn = m.conn
	}
	r.reported = true
	r.sign(m.from, now)
	if m.kind == syncEnd {
		if r.sync != nil && r.sync.id == m.sync {
			r.sync.ended = true
		}
		return nil
	}
	s, err := f.streamOf(i, r, m.location, tierOf(m.location))
	if err != nil {
		return err
	}
	defer i.judge()
	if m.kind == syncBatch {
		f.fill(i, r, s, m, now)
		return nil
	}
	f.operate(i, r, s, m, now)
	return nil
}

// operate applies operations in their order.
func (f *fleet) operate(i *instance, r *rank, s *stream, m *message, now time.Time) {
	for _, op := range m.ops {
		if op.seq != noSeq && op.seq != s.next {
			f.jump(i, r, s, op.seq, now)
		}
		if op.seq != noSeq {
			s.next = op.seq + 1
		}
		if op.evict {
			f.count.Evicts++
			f.dir.evict(s.seat, op.key)
			continue
		}
		f.count.Admits++
		f.admit(i, s.seat, op.key, now)
	}
}

// admit enters a chunk unless the instance, or all together, have too many: then the view is cleared rather than wrong.
func (f *fleet) admit(i *instance, s *seat, key uint64, now time.Time) {
	if i.why == flooded {
		return
	}
	i.admits.Add(1)
	if s.keys.Load() >= int64(f.limit.Keys) {
		f.doubt(i, flooded, now, "keys", s.keys.Load())
		return
	}
	if f.dir.admit(s, key) {
		return
	}
	most := i
	for _, other := range f.instances {
		if other.keys() > most.keys() {
			most = other
		}
	}
	f.doubt(most, flooded, now, "keys", most.keys(), "of_all", f.limit.AllKeys)
	f.dir.sweepAll()
	f.dir.admit(s, key)
}

// jump handles a sequence number that is not the next one: operations were lost, or the worker restarted.
func (f *fleet) jump(i *instance, r *rank, s *stream, seq int64, now time.Time) {
	first := s.next == noSeq
	f.dir.clear(s.seat)
	switch {
	case seq == 0: // from its beginning; it may have begun anew without a word
		return
	case first: // what it did before is not known
		if r.want == "" {
			r.want = "worker_re_registered"
		}
		return
	}
	r.want = "sequence_gap"
	f.count.Gaps++
	f.warn("gap"+i.id,
		"operations of an LMCache worker were lost: what it holds there is cleared until it sends all again",
		"instance", i.id, "rank", r.number, "location", s.seat.location, "expected", s.next, "got", seq,
		"remedy", "set lmcache_worker_heartbeat_time, as a full sync is asked for in the answer to a heartbeat")
	i.gaps = append(i.gaps, now)
	if len(i.gaps) > maxGaps {
		i.gaps = i.gaps[1:]
		if now.Sub(i.gaps[0]) < doubtFor {
			f.doubt(i, unstable, now)
		}
	}
}

// maxGaps is how many gaps a minute an instance may have.
const maxGaps = 3

// startSync takes a FullSyncStartMsg. It returns why it is refused, or "".
func (f *fleet) startSync(m *message, now time.Time) (refusal string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i, err := f.find(m.instance, false, now)
	if err != nil {
		return err.Error()
	}
	r, err := f.rankOf(i, m.worker, now)
	if err != nil {
		return err.Error()
	}
	s, err := f.streamOf(i, r, m.location, tierOf(m.location))
	if err != nil {
		return err.Error()
	}
	sync, err := newFullSync(m, now)
	if err != nil {
		return err.Error()
	}
	if m.total > f.limit.Keys {
		return fmt.Sprintf("%d keys; at most %d", m.total, f.limit.Keys)
	}
	r.sync, r.reported = sync, true
	r.sign(m.from, now)
	f.dir.clear(s.seat)
	return ""
}

// fill enters a batch of a full sync. The batches and the operations after them come on one connection in their order,
// so both go into the same view.
func (f *fleet) fill(i *instance, r *rank, s *stream, m *message, now time.Time) {
	if !r.sync.take(m) || r.sync.location != m.location {
		return
	}
	for _, key := range m.keys {
		f.admit(i, s.seat, key, now)
	}
	if r.sync.complete() {
		r.want = ""
		f.count.Syncs++
		f.log.Info("LMCache worker synced", "instance", i.id, "rank", r.number, "location", m.location,
			"keys", s.seat.keys.Load())
	}
}

// syncProgress answers a FullSyncStatusMsg.
func (f *fleet) syncProgress(m *message, now time.Time) progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.instances[m.instance]
	if i == nil || i.ranks[m.worker] == nil {
		return progress{complete: true, share: 1}
	}
	r := i.ranks[m.worker]
	r.sign(m.from, now)
	p := r.sync.progress(m.sync)
	if p.complete {
		r.sync = nil
	}
	return p
}

// locate answers a BatchedP2PLookupMsg: which other instance has the most of these chunks in its memory, in their
// order, at the same rank, and can be asked for them.
func (f *fleet) locate(m *message) (best found) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.instances {
		r := i.ranks[m.worker]
		if i.id == m.instance || r == nil || r.peerURL == "" || !i.live.Load() {
			continue
		}
		for location, s := range r.streams {
			if n := f.dir.run(s.seat, m.keys); n > best.chunks {
				best = found{instance: i.id, location: location, chunks: n, peerURL: r.peerURL}
			}
		}
	}
	return best
}
