package tier

import (
	"context"
	"time"
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
		case <-s.owed:
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

// heal probes Redis and, if it answers in time, tells it what it does not know; then the breaker is closed. What is changed
// while it tells stays owed until the next pulse: under load there is always some.
func (s *Store) heal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 4*healTimeout)
	defer cancel()
	open := s.l2.open.Load()
	if !s.l2.probe(ctx, open) || !s.remind(ctx) {
		return
	}
	told := 0
	for owing := s.l1.debtors(); len(owing) > 0; {
		debts := s.l1.debts(owing[:min(batch, len(owing))], s.now())
		owing = owing[min(batch, len(owing)):]
		n, ok := s.tell(ctx, debts)
		told += n
		s.n.told.Add(uint64(n))
		if !ok {
			return
		}
	}
	if open {
		s.l2.epoch.doubt(time.Now())
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
