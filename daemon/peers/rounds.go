package peers

import (
	"context"
	"slices"
	"time"
)

const (
	beatEvery = time.Second
	// roundEvery is the time between two round trips while requests come. The first request that ends after it begins the
	// next round, or a little later one that is sent: waking a goroutine for the round costs more than the round itself.
	// After roundMost a round begins in any case. A record waits for half of roundEvery on the mean before it is sent,
	// and as long again before it is read: 25 ms in all, and 60 at most.
	roundEvery = 25 * time.Millisecond
	roundMost  = 30 * time.Millisecond
	// batchFor is how long the first record after a silence waits for others.
	batchFor = 10 * time.Millisecond
	maxBatch = 1 << 20 // bytes of one write a pool
)

// runRounds exchanges messages with the other routers until ctx ends. While there is anything to send or to receive,
// one round trip in roundEvery does both. Round trips are the largest cost of history, so requests begin them in
// passing (see lane). In a silence, and while Redis is lost, a blocking read waits for new entries at the same time.
func (p *Peers) runRounds(ctx context.Context) {
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	defer p.guard.Stop()
	defer p.lapse.Stop()
	var read chan error // the result of the blocking read; nil = none is under way
	defer func() {
		if read != nil {
			<-read
		}
		p.dropCable(nil)
		p.following.Wait()
	}()
	silent := true
	for ctx.Err() == nil {
		if read == nil && (silent || !p.health.ok() || p.anyReplayPending()) {
			p.stopPassing()
			p.due.Store(0) // the next record is sent soon
			if p.anyQueued() {
				p.wakeFor(time.Now())
			}
			read = make(chan error, 1)
			go func() { read <- p.listenOnce(ctx) }()
		} else if read == nil {
			p.lane.on.Store(p.lane.connected())
		}
		due := p.guard.C
		if read != nil {
			due = nil
		}
		select {
		case <-ctx.Done():
		case <-beats.C:
			p.beat(ctx)
			p.connect(ctx)
		case <-p.lapse.C:
			p.expire(time.Now())
		case err := <-read:
			read, silent = nil, err != nil
			p.guard.Reset(roundEvery)
		case <-p.wake:
			if read == nil {
				silent = !p.round(ctx)
				p.guard.Reset(roundMost)
				break
			}
			wait(ctx, batchFor)
			p.flush(ctx) // the blocking read receives this as well, and ends
			p.postponeRound()
		case <-due:
			silent = !p.round(ctx)
			p.guard.Reset(roundMost)
		}
	}
}

// anyReadsNew reports whether any pool's stream is to be read for new entries.
func (p *Peers) anyReadsNew() bool { return slices.ContainsFunc(p.list(), (*Member).readsNew) }

// anyQueued reports whether any record has not been written to a frame.
func (p *Peers) anyQueued() bool {
	return slices.ContainsFunc(p.list(), func(m *Member) bool { return m.sender.hasQueued() })
}

// postponeRound keeps rounds from beginning for roundEvery.
func (p *Peers) postponeRound() { p.due.Store(int64(time.Since(p.began) + roundEvery)) }

// listenOnce listens, and waits a little after a failure.
func (p *Peers) listenOnce(ctx context.Context) error {
	err := p.listen(ctx)
	if err != nil && ctx.Err() == nil {
		p.health.failRead(err, time.Now())
		wait(ctx, backOff)
	}
	return err
}

// anyReplayPending reports whether any pool has still to read its stream's older entries.
func (p *Peers) anyReplayPending() bool {
	return slices.ContainsFunc(p.list(), (*Member).replayPending)
}

// round sends the frames that wait and applies new entries. It reports whether there was anything; a read that failed
// is left to listen. On the lane, round begins the next exchange and reports on the last one.
func (p *Peers) round(ctx context.Context) bool {
	select {
	case <-p.wake: // this round sends the records that it announced
	default:
	}
	l := &p.lane
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case p.currentExchange() != nil:
		return true
	case l.cable == nil || !p.anyReadsNew():
		p.postponeRound()
		sent, others, err := p.exchange(ctx, true)
		return sent+others > 0 && err == nil
	case l.idle && !p.anyQueued():
		l.idle = false
		return false
	}
	p.beginExchange()
	return true
}

// flush sends all frames that wait, if Redis is there. Nothing is under way on the lane.
func (p *Peers) flush(ctx context.Context) {
	p.lane.mu.Lock()
	defer p.lane.mu.Unlock()
	for more := true; more && p.health.ok(); {
		sent, _, _ := p.exchange(ctx, false)
		more = sent > 0 && p.waiting() > 0
	}
}

// stopPassing keeps requests from beginning rounds, and waits for the round under way.
func (p *Peers) stopPassing() {
	l := &p.lane
	l.on.Store(false)
	for {
		l.mu.Lock()
		u := p.currentExchange()
		l.mu.Unlock()
		if u == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// currentExchange returns the exchange under way on the lane; nil = none. It cuts an exchange that takes too long. The
// caller holds the lane.
func (p *Peers) currentExchange() *parcel {
	if u := p.lane.current; u != nil && time.Since(u.at) > laneTimeout {
		p.cutCable()
	}
	return p.lane.current
}

// tryRound begins a round if one is due, and reports whether it did. A request calls it, so it waits for nothing.
func (p *Peers) tryRound(at time.Time) bool {
	l := &p.lane
	if !l.on.Load() || int64(at.Sub(p.began)) < p.due.Load() || !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	if l.cable == nil || l.current != nil || !l.on.Load() {
		return false
	}
	p.beginExchange()
	p.guard.Reset(roundMost)
	return true
}

// packParcel takes the frames that wait, up to most bytes a pool, and with listen adds a read of the new entries.
func (p *Peers) packParcel(most int, listen bool) (u parcel) {
	u.at = time.Now()
	all := p.list()
	for _, m := range all {
		if no, _ := m.refused(); !no {
			u.add(m, most, p.conf.StreamBytes)
		}
	}
	if listen {
		u.reading.of(all)
	}
	return u
}

// applyReply applies the answer to a parcel.
func (p *Peers) applyReply(ctx context.Context, u *parcel, x *exchanged) (sent, others int) {
	for i, m := range u.members {
		if n := x.taken[i]; n > 0 {
			m.sender.Confirm(u.batches[i].frames[:n])
			m.recordWritten(x.last[i])
			sent += n
		}
		if err := x.errs[i]; err != nil && ctx.Err() == nil {
			p.recordFailure(m, err, u.at)
		}
	}
	if len(u.reading.members) > 0 && x.readErr == nil {
		others = p.applyEntries(&u.reading, x.got, u.at)
	}
	return sent, others
}

// recordFailure records that Redis took no more frames of a pool. An error for one pool alone does not count against
// Redis.
func (p *Peers) recordFailure(m *Member, err error, at time.Time) {
	if isReply(err) {
		m.markWriteRefused(p.log, err, at)
		if slices.ContainsFunc(p.list(), func(m *Member) bool { no, _ := m.refused(); return !no }) {
			return
		}
	}
	p.health.fail(err, at)
}

// exchange sends the frames that wait, with listen applies new entries, and waits for both. The caller holds the lane.
func (p *Peers) exchange(ctx context.Context, listen bool) (sent, others int, readErr error) {
	u := p.packParcel(maxBatch, listen)
	if len(u.batches)+len(u.reading.members) == 0 {
		return 0, 0, nil
	}
	x := p.link.exchange(ctx, u.batches, u.reading.streams, u.reading.after)
	sent, others = p.applyReply(ctx, &u, &x)
	return sent, others, x.readErr
}

// beginExchange begins an exchange on the cable; readReplies ends it. The caller holds the lane.
func (p *Peers) beginExchange() {
	p.postponeRound()
	u := p.packParcel(mostInPassing, true)
	if len(u.reading.members) == 0 {
		return
	}
	if err := p.lane.cable.writeCommands(u.batches, u.reading.streams, u.reading.after); err != nil {
		p.cutCable()
		return
	}
	p.lane.current = &u
}

// readReplies reads and applies the replies on a cable until the cable ends.
func (p *Peers) readReplies(c *cable) {
	for {
		if err := c.readMore(); err != nil {
			p.dropCable(c)
			return
		}
		l := &p.lane
		l.mu.Lock()
		u := l.current
		if l.cable != c || u == nil {
			l.mu.Unlock()
			p.dropCable(c)
			return
		}
		l.mu.Unlock()
		x, whole, err := parseReply(c.in, u.batches)
		if err != nil {
			p.dropCable(c)
			return
		}
		if !whole {
			continue
		}
		sent, others := p.applyReply(context.Background(), u, &x)
		c.dropReply()
		l.mu.Lock()
		if l.current == u {
			l.current, l.idle = nil, sent+others == 0
		}
		l.mu.Unlock()
		if p.anyReplayPending() { // another stream has taken the old one's place
			p.wakeNow()
		}
	}
}

// connect makes a cable if there is none and Redis is there.
func (p *Peers) connect(ctx context.Context) {
	if !p.health.ok() || p.lane.connected() || p.link.opt.TLSConfig != nil {
		return
	}
	c, err := p.link.cable(ctx)
	if c == nil || err != nil {
		return // calls that wait for their answer report the error
	}
	p.lane.mu.Lock()
	p.lane.cable = c
	p.lane.mu.Unlock()
	p.following.Go(func() { p.readReplies(c) })
}

// dropCable ends the cable c if the lane uses it; with nil, any cable. What was under way on it is sent again.
func (p *Peers) dropCable(c *cable) {
	p.lane.mu.Lock()
	defer p.lane.mu.Unlock()
	if c != nil && p.lane.cable != c {
		c.close()
		return
	}
	p.cutCable()
}

// cutCable is dropCable with the lane held.
func (p *Peers) cutCable() {
	l := &p.lane
	l.on.Store(false)
	if l.cable != nil {
		l.cable.close()
		l.cable = nil
		p.due.Store(0)
	}
	l.current = nil
}

// waiting returns the number of messages that Redis has not taken yet.
func (p *Peers) waiting() (n int) {
	for _, m := range p.list() {
		n += m.sender.Stats().Waiting
	}
	return n
}
