package peers

import (
	"context"
	"slices"
	"time"
)

const (
	beatEvery = time.Second
	// roundEvery is the time between two round trips while requests come: the first request that ends after it begins the
	// next one, or a little later one that is sent, since to wake somebody for that costs more than to do it. After
	// roundMost one begins in any case. What is told waits for half of it on the mean, and so does what is heard: 25 ms in
	// all, and 60 at most.
	roundEvery = 25 * time.Millisecond
	roundMost  = 30 * time.Millisecond
	// batchFor is how long the first thing that is told after a silence waits for more.
	batchFor = 10 * time.Millisecond
	maxBatch = 1 << 20 // bytes of one write a pool
)

// converse tells and hears until ctx ends. While there is anything to tell or to hear, one round trip in roundEvery
// does both: round trips are what history costs most, and so requests begin them in passing (see lane). In a silence,
// and while Redis is lost, a read that waits for news is under way beside it.
func (p *Peers) converse(ctx context.Context) {
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	defer p.guard.Stop()
	defer p.lapse.Stop()
	var heard chan error // of the read that is under way; nil = none is
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
			p.due.Store(0) // the next thing that is told is sent soon
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
			p.flush(ctx) // the read hears this too, and ends
			p.rest()
		case <-due:
			silent = !p.round(ctx)
			p.guard.Reset(roundMost)
		}
	}
}

// listens reports whether there is a pool of which what is new is to be read.
func (p *Peers) listens() bool { return slices.ContainsFunc(p.list(), (*Member).listens) }

// unsaid reports whether anything was told that no frame has.
func (p *Peers) unsaid() bool {
	return slices.ContainsFunc(p.list(), func(m *Member) bool { return m.teller.unsaid() })
}

// rest has nothing sent for as long as a round takes.
func (p *Peers) rest() { p.due.Store(int64(time.Since(p.began) + roundEvery)) }

// await listens, and after a fault waits a little.
func (p *Peers) await(ctx context.Context) error {
	err := p.listen(ctx)
	if err != nil && ctx.Err() == nil {
		p.health.failRead(err, time.Now())
		wait(ctx, backOff)
	}
	return err
}

// joins reports whether a pool is there that has not heard what was there before it.
func (p *Peers) joins() bool { return slices.ContainsFunc(p.list(), (*Member).joins) }

// round tells what waits and hears what is new. It reports whether there was anything; a read that failed is for listen
// to look into. On the lane it is the last round that it reports of, and the next one that it begins.
func (p *Peers) round(ctx context.Context) bool {
	select {
	case <-p.wake: // what it says is told now
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

// flush tells all that waits, if Redis is there. Nothing is under way on the lane.
func (p *Peers) flush(ctx context.Context) {
	p.lane.mu.Lock()
	defer p.lane.mu.Unlock()
	for more := true; more && p.health.ok(); {
		told, _, _ := p.exchange(ctx, false)
		more = told > 0 && p.waiting() > 0
	}
}

// alone keeps requests from beginning rounds, and waits for the one that is under way.
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

// underWay returns the exchange that is under way on the lane; nil = none. It cuts one that takes too long. The caller
// holds the lane.
func (p *Peers) underWay() *parcel {
	if u := p.lane.under; u != nil && time.Since(u.at) > laneTimeout {
		p.cut()
	}
	return p.lane.under
}

// pass begins a round if one is due, and reports whether it did. It waits for nothing: a request calls it.
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

// pack takes what waits, of up to so many bytes a pool, and asks for what is new if it is to listen.
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

// failed notes that nothing more of a pool was taken. What Redis refuses of one pool alone does not concern the others.
func (p *Peers) failed(m *Member, err error, at time.Time) {
	if refused(err) {
		m.refuse(p.log, err, at)
		if slices.ContainsFunc(p.list(), func(m *Member) bool { no, _ := m.refused(); return !no }) {
			return
		}
	}
	p.health.fail(err, at)
}

// exchange sends what waits, applies what is new if it is to listen, and waits for both. The caller holds the lane.
func (p *Peers) exchange(ctx context.Context, listen bool) (told, others int, readErr error) {
	u := p.pack(maxBatch, listen)
	if len(u.all)+len(u.reading.members) == 0 {
		return 0, 0, nil
	}
	x := p.link.exchange(ctx, u.all, u.reading.streams, u.reading.after)
	told, others = p.settle(ctx, &u, &x)
	return told, others, x.readErr
}

// begin begins an exchange on the cable, which follow ends. The caller holds the lane.
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

// follow reads what comes on a cable until that ends.
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
		if p.joins() { // the stream is another one
			p.poke()
		}
	}
}

// connect makes a cable if there is none, while Redis is there.
func (p *Peers) connect(ctx context.Context) {
	if !p.health.ok() || p.lane.there() || p.link.opt.TLSConfig != nil {
		return
	}
	c, err := p.link.cable(ctx)
	if c == nil || err != nil {
		return // calls that wait for their answer say what is wrong
	}
	p.lane.mu.Lock()
	p.lane.cable = c
	p.lane.mu.Unlock()
	p.following.Go(func() { p.follow(c) })
}

// drop ends a cable if it is the one there is, or whichever that is. What was under way on it is sent again.
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

// waiting is how many messages have not been taken.
func (p *Peers) waiting() (n int) {
	for _, m := range p.list() {
		n += m.teller.Stats().Waiting
	}
	return n
}
