package tier

import (
	"context"
	"time"
)

const (
	// pulse is how often the healer looks after Redis. Five failures in a row open the breaker: half a second without any
	// traffic.
	pulse = 100 * time.Millisecond
	// sweepEvery bounds how long an expired value takes memory.
	sweepEvery    = time.Second
	probesToClose = 3
)

// healer finds out whether Redis is lost or back, and sends it what it missed. Only the healer closes the breaker.
type healer struct{ *tiers }

// run sweeps and heals until ctx is done. A store of memory alone has nothing to heal: it is woken to sweep.
func (h healer) run(ctx context.Context) {
	every := pulse
	if h.l2 == nil {
		every = sweepEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for swept := h.now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-h.wake:
		}
		if now := h.now(); h.l2 == nil || now-swept >= int64(sweepEvery) {
			h.l1.sweep(now)
			swept = now
		}
		if h.l2 != nil {
			h.heal(ctx)
		}
	}
}

// heal probes Redis. If Redis answers in time, heal sends the changes that Redis has missed and closes the breaker.
// Changes that are made meanwhile are sent by the next call: under load there are always some.
func (h healer) heal(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 4*backgroundTimeout)
	defer cancel()
	open := h.l2.breaker.Open()
	if !h.probe(ctx, open) || !h.restore(ctx) {
		return
	}
	paid, ok := h.payDebts(ctx)
	if !ok || !open {
		return
	}
	h.l2.epoch.doubtFrom(time.Now())
	lasted, _ := h.l2.breaker.Close(time.Now())
	h.l2.log.Info("tier: Redis is back", "addr", h.l2.addr, "after", lasted.Round(time.Millisecond), "told", paid)
}

// probe reports whether Redis takes a write. While the breaker is open the first one may take its time, since it may
// have to dial. Then Redis is given the scripts, and several answers in a row must come within Timeout, so that a Redis
// on the edge does not open and close the breaker all the time.
func (h healer) probe(ctx context.Context, open bool) bool {
	r := h.l2
	if !open {
		start := time.Now()
		err := r.writeProbe(ctx, r.timeout)
		r.count(start, err)
		return err == nil
	}
	err := r.writeProbe(ctx, backgroundTimeout)
	if err == nil {
		err = r.loadScripts(ctx)
	}
	if err != nil {
		r.still(err)
		return false
	}
	for range probesToClose {
		if r.writeProbe(ctx, r.timeout) != nil {
			return false
		}
	}
	return true
}

// restore puts back what memory holds if Redis has forgotten it. It returns false if Redis did not answer.
func (h healer) restore(ctx context.Context) bool {
	if !h.l2.readEpoch(ctx) {
		return true
	}
	h.l2.log.Warn("tier: Redis has lost its data; what memory holds is put back", "addr", h.l2.addr)
	for all := h.l1.all(); len(all) > 0; all = all[min(batch, len(all)):] {
		if _, ok := h.send(ctx, h.l1.confirmed(all[:min(batch, len(all))], h.now())); !ok {
			h.l2.epoch.restoreAgain()
			return false
		}
	}
	return true
}

// payDebts gives Redis what it is owed, and returns how many debts are paid. ok is false if Redis did not answer all of
// it.
func (h healer) payDebts(ctx context.Context) (paid int, ok bool) {
	for all := h.l1.debtors(); len(all) > 0; all = all[min(batch, len(all)):] {
		n, ok := h.send(ctx, h.l1.debts(all[:min(batch, len(all))], h.now()))
		paid += n
		h.n.paid.Add(uint64(n))
		if !ok {
			return paid, false
		}
	}
	return paid, true
}

// send sends the debts to Redis and stores its answers. It returns how many debts are over.
func (h healer) send(ctx context.Context, debts []owed) (done int, ok bool) {
	err := h.l2.send(ctx, debts, func(o *owed, r reply) {
		if r.kind == kindRestored {
			h.l2.restored.Add(1)
		}
		if h.l1.finish(o, r, h.now()) {
			done++
		}
	})
	if err != nil && !h.l2.breaker.Open() {
		h.l2.noteRefusal(err)
	}
	return done, err == nil
}
