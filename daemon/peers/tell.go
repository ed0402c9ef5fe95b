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
	// After roundMost a round begins in any case. A record waits for half of roundEvery on the mean before it is sent, and
	// as long again before it is read: 25 ms in all, and 60 at most.
	roundEvery = 25 * time.Millisecond
	roundMost  = 30 * time.Millisecond
	// batchFor is how long the first record after a silence waits for others.
	batchFor = 10 * time.Millisecond
	maxBatch = 1 << 20 // bytes of one write a pool
)

// converse exchanges messages with the other routers until ctx ends. While there is anything to send or to receive, one
// round trip in roundEvery does both. Round trips are the largest cost of history, so requests begin them in passing
// (see lane). In a silence, and while Redis is lost, a blocking read waits for new entries at the same time.
func (p *Peers) converse(ctx context.Context) {
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	defer p.guard.Stop()
	defer p.lapse.Stop()
	var heard chan error // the result of the blocking read; nil = none is under way
	defer func() {
		if heard != nil {
			<-heard
		}
		p.drop(nil)
		p.following.Wait()
	}()
	silent := true
	for ctx.Err() == nil {
		if heard == nil && (silent || !p.health.ok() || p.joins()) {
			p.alone()
			p.due.Store(0) // the next record is sent soon
			if p.unsaid() {
				p.hint(time.Now())
			}
			heard = make(chan error, 1)
			go func() { heard <- p.await(ctx) }()
		} else if heard == nil {
			p.lane.on.Store(p.lane.there())
		}
		due := p.guard.C
		if heard != nil {
			due = nil
		}
		select {
		case <-ctx.Done():
		case <-beats.C:
			p.beat(ctx)
			p.connect(ctx)
		case <-p.lapse.C:
			p.expire(time.Now())
		case err := <-heard:
			heard, silent = nil, err != nil
			p.guard.Reset(roundEvery)
		case <-p.wake:
			if heard == nil {
				silent = !p.round(ctx)
				p.guard.Reset(roundMost)
				break
			}
			wait(ctx, batchFor)
			p.flush(ctx) // the blocking read receives this as well, and ends
			p.rest()
		case <-due:
			silent = !p.round(ctx)
			p.guard.Reset(roundMost)
		}
	}
}

// listens reports whether any pool's stream is to be read for new entries.
func (p *Peers) listens() bool { return slices.ContainsFunc(p.list(), (*Member).listens) }

// unsaid reports whether any record has not been written to a frame.
func (p *Peers) unsaid() bool {
	return slices.ContainsFunc(p.list(), func(m *Member) bool { return m.teller.unsaid() })
}

// rest keeps rounds from beginning for roundEvery.
func (p *Peers) rest() { p.due.Store(int64(time.Since(p.began) + roundEvery)) }

// await listens, and waits a little after a failure.
func (p *Peers) await(ctx context.Context) error {
	err := p.listen(ctx)
	if err != nil && ctx.Err() == nil {
		p.health.failRead(err, time.Now())
		wait(ctx, backOff)
	}
	return err
}

// joins reports whether any pool has still to read its stream's older entries.
func (p *Peers) joins() bool { return slices.ContainsFunc(p.list(), (*Member).joins) }

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
	case p.underWay() != nil:
		return true
	case l.cable == nil || !p.listens():
		p.rest()
		told, others, err := p.exchange(ctx, true)
		return told+others > 0 && err == nil
	case l.idle && !p.unsaid():
		l.idle = false
		return false
	}
	p.begin()
	return true
}

// flush sends all frames that wait, if Redis is there. Nothing is under way on the lane.
func (p *Peers) flush(ctx context.Context) {
	p.lane.mu.Lock()
	defer p.lane.mu.Unlock()
	for more := true; more && p.health.ok(); {
		told, _, _ := p.exchange(ctx, false)
		more = told > 0 && p.waiting() > 0
	}
}

// alone keeps requests from beginning rounds, and waits for the round under way.
func (p *Peers) alone() {
	l := &p.lane
	l.on.Store(false)
	for {
		l.mu.Lock()
		u := p.underWay()
		l.mu.Unlock()
		if u == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// underWay returns the exchange under way on the lane; nil = none. It cuts an exchange that takes too long. The caller
// holds the lane.
func (p *Peers) underWay() *parcel {
	if u := p.lane.under; u != nil && time.Since(u.at) > laneTimeout {
		p.cut()
	}
	return p.lane.under
}

// pass begins a round if one is due, and reports whether it did. A request calls it, so it waits for nothing.
func (p *Peers) pass(at time.Time) bool {
	l := &p.lane
	if !l.on.Load() || int64(at.Sub(p.began)) < p.due.Load() || !l.mu.TryLock() {
		return false
	}
	defer l.mu.Unlock()
	if l.cable == nil || l.under != nil || !l.on.Load() {
		return false
	}
	p.begin()
	p.guard.Reset(roundMost)
	return true
}

// pack takes the frames that wait, up to most bytes a pool, and with listen adds a read of the new entries.
func (p *Peers) pack(most int, listen bool) (u parcel) {
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

// settle applies the answer to a parcel.
func (p *Peers) settle(ctx context.Context, u *parcel, x *exchanged) (told, others int) {
	for i, m := range u.of {
		if n := x.taken[i]; n > 0 {
			m.teller.Taken(u.all[i].frames[:n])
			m.wrote(x.last[i])
			told += n
		}
		if err := x.errs[i]; err != nil && ctx.Err() == nil {
			p.failed(m, err, u.at)
		}
	}
	if len(u.reading.members) > 0 && x.readErr == nil {
		others = p.apply(&u.reading, x.got, u.at)
	}
	return told, others
}

// failed records that Redis took no more frames of a pool. An error for one pool alone does not count against Redis.
func (p *Peers) failed(m *Member, err error, at time.Time) {
	if isReply(err) {
		m.refuse(p.log, err, at)
		if slices.ContainsFunc(p.list(), func(m *Member) bool { no, _ := m.refused(); return !no }) {
			return
		}
	}
	p.health.fail(err, at)
}

// exchange sends the frames that wait, with listen applies new entries, and waits for both. The caller holds the lane.
func (p *Peers) exchange(ctx context.Context, listen bool) (told, others int, readErr error) {
	u := p.pack(maxBatch, listen)
	if len(u.all)+len(u.reading.members) == 0 {
		return 0, 0, nil
	}
	x := p.link.exchange(ctx, u.all, u.reading.streams, u.reading.after)
	told, others = p.settle(ctx, &u, &x)
	return told, others, x.readErr
}

// begin begins an exchange on the cable; follow ends it. The caller holds the lane.
func (p *Peers) begin() {
	p.rest()
	u := p.pack(mostInPassing, true)
	if len(u.reading.members) == 0 {
		return
	}
	if err := p.lane.cable.ask(u.all, u.reading.streams, u.reading.after); err != nil {
		p.cut()
		return
	}
	p.lane.under = &u
}

// follow reads and applies the replies on a cable until the cable ends.
func (p *Peers) follow(c *cable) {
	for {
		if err := c.more(); err != nil {
			p.drop(c)
			return
		}
		l := &p.lane
		l.mu.Lock()
		u := l.under
		if l.cable != c || u == nil {
			l.mu.Unlock()
			p.drop(c)
			return
		}
		l.mu.Unlock()
		x, whole, err := answered(c.in, u.all)
		if err != nil {
			p.drop(c)
			return
		}
		if !whole {
			continue
		}
		told, others := p.settle(context.Background(), u, &x)
		c.read()
		l.mu.Lock()
		if l.under == u {
			l.under, l.idle = nil, told+others == 0
		}
		l.mu.Unlock()
		if p.joins() { // another stream has taken the old one's place
			p.poke()
		}
	}
}

// connect makes a cable if there is none and Redis is there.
func (p *Peers) connect(ctx context.Context) {
	if !p.health.ok() || p.lane.there() || p.link.opt.TLSConfig != nil {
		return
	}
	c, err := p.link.cable(ctx)
	if c == nil || err != nil {
		return // calls that wait for their answer report the error
	}
	p.lane.mu.Lock()
	p.lane.cable = c
	p.lane.mu.Unlock()
	p.following.Go(func() { p.follow(c) })
}

// drop ends the cable c if the lane uses it; with nil, any cable. What was under way on it is sent again.
func (p *Peers) drop(c *cable) {
	p.lane.mu.Lock()
	defer p.lane.mu.Unlock()
	if c != nil && p.lane.cable != c {
		c.close()
		return
	}
	p.cut()
}

// cut is drop with the lane held.
func (p *Peers) cut() {
	l := &p.lane
	l.on.Store(false)
	if l.cable != nil {
		l.cable.close()
		l.cable = nil
		p.due.Store(0)
	}
	l.under = nil
}

// waiting returns the number of messages that Redis has not taken yet.
func (p *Peers) waiting() (n int) {
	for _, m := range p.list() {
		n += m.teller.Stats().Waiting
	}
	return n
}
