package tier

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// probeEvery is the pulse of the healer. Five failures in a row open the breaker: half a second without any traffic.
	probeEvery = 100 * time.Millisecond
	// sweepEvery bounds how long an expired value takes memory.
	sweepEvery = time.Second
	// healTimeout is for one step in the background, where no request waits.
	healTimeout   = time.Second
	probesToClose = 3
	// batch of changes told in one round trip.
	batch = 256
)

// Run removes what is expired, finds out that Redis is lost or back, and tells it what it missed, until ctx is done.
func (s *Store) Run(ctx context.Context) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for swept := s.now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if now := s.now(); now-swept >= int64(sweepEvery) {
			s.l1.sweep(now)
			swept = now
		}
		if s.l2 != nil {
			s.heal(ctx)
		}
	}
}

// heal probes Redis and, if it answers in time, tells it what it does not know; then the breaker is closed.
func (s *Store) heal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 4*healTimeout)
	defer cancel()
	open := s.l2.open.Load()
	if !s.l2.probe(ctx, open) {
		return
	}
	told := 0
	for {
		debts := s.l1.debts(s.now(), batch)
		if len(debts) == 0 {
			break
		}
		if !s.tell(ctx, debts) {
			return
		}
		told += len(debts)
		s.n.told.Add(uint64(len(debts)))
	}
	if open {
		lasted := s.l2.close()
		s.conf.Log.Info("tier: Redis is back", "addr", s.l2.addr, "after", lasted.Round(time.Millisecond), "told", told)
	}
}

// probe writes a key, since a replica or a full Redis answers a read. While the breaker is open it takes its time with the
// first answer, which may have to dial, and loads the scripts; then several answers in a row must come within Timeout, so
// that a Redis on the edge does not open and close it all the time.
func (r *remote) probe(ctx context.Context, open bool) bool {
	if !open {
		start := time.Now()
		err := r.mark(ctx, r.timeout)
		r.outcome(start, err)
		return err == nil
	}
	if r.mark(ctx, healTimeout) != nil {
		return false
	}
	for _, script := range scripts {
		if script.Load(ctx, r.c).Err() != nil {
			return false
		}
	}
	for range probesToClose {
		if r.mark(ctx, r.timeout) != nil {
			return false
		}
	}
	return true
}

func (r *remote) mark(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return r.c.Set(ctx, r.prefix+"probe", "", time.Second).Err()
}

// change is an entry that L2 has to be told of, as it stood at its ticket.
type change struct {
	ns, key string
	value   []byte
	ttl     time.Duration
	owes    debt
	ticket  uint32
}

// debts returns up to n of the changes.
func (m *memory) debts(now int64, n int) []change {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []change
	for e := range m.owing {
		if e.expires <= now {
			m.expireNow(e)
			continue
		}
		all = append(all, change{e.space.name, e.key, e.value, left(now, e.expires), e.owes, *m.slot(e.space.name, e.key)})
		if len(all) == n {
			break
		}
	}
	return all
}

// tell writes a batch in one round trip. What was changed here meanwhile stays owed, and is told again.
func (s *Store) tell(ctx context.Context, debts []change) bool {
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	_, err := s.l2.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, d := range debts {
			key := []string{s.l2.key(d.ns, d.key)}
			switch d.owes {
			case oweDelete: // whole scripts: a restarted Redis knows none, and a batch cannot ask twice
				scriptDelete.Eval(ctx, p, key, millis(d.ttl))
			case oweTouch:
				scriptTouch.Eval(ctx, p, key, marked(d.value), millis(d.ttl))
			default:
				p.Set(ctx, key[0], marked(d.value), time.Duration(millis(d.ttl))*time.Millisecond)
			}
		}
		return nil
	})
	if err != nil {
		return false
	}
	now := s.now()
	for _, d := range debts {
		s.l1.paidUp(d, now)
	}
	return true
}

// paidUp notes that L2 was told of a change, unless there was another one meanwhile.
func (m *memory) paidUp(d change, now int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(d.ns, d.key, now)
	switch {
	case e == nil:
	case *m.slot(d.ns, d.key) != d.ticket:
		m.oweAll(e)
	case e.dead:
		m.drop(e)
	default:
		m.owe(e, paid)
	}
}
