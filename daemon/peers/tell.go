package peers

import (
	"context"
	"slices"
	"time"
)

const (
	beatEvery = time.Second
	// roundEvery is the time between two round trips while requests come: the first thing that is told after it begins the
	// next one, as a process that is awake anyway pays half for it. After roundMost one begins in any case. What is told
	// waits for half of it on the mean, and so does what is heard: 25 ms in all, and 60 at most.
	roundEvery = 25 * time.Millisecond
	roundMost  = 30 * time.Millisecond
	// batchFor is how long the first thing that is told after a silence waits for more.
	batchFor = 10 * time.Millisecond
	backOff  = 200 * time.Millisecond
	maxBatch = 1 << 20 // bytes of one write a pool
)

// converse tells and hears until ctx ends. While there is anything to tell or to hear, one round trip in roundEvery
// does both: round trips are what history costs most. In a silence, and while Redis is lost, a read that waits for
// news is under way beside it.
func (p *Peers) converse(ctx context.Context) {
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	round := time.NewTimer(roundEvery)
	defer round.Stop()
	var heard chan error // of the read that is under way; nil = none is
	defer func() {
		if heard != nil {
			<-heard
		}
	}()
	silent := true
	for ctx.Err() == nil {
		if heard == nil && (silent || !p.health.ok() || p.joins()) {
			p.due.Store(0) // the next thing that is told is sent soon
			if p.unsaid() {
				p.hint(time.Now())
			}
			heard = make(chan error, 1)
			go func() { heard <- p.await(ctx) }()
		}
		due := round.C
		if heard != nil {
			due = nil
		}
		select {
		case <-ctx.Done():
		case <-beats.C:
			p.beat(ctx)
		case err := <-heard:
			heard, silent = nil, err != nil
			round.Reset(roundEvery)
		case <-p.wake:
			if heard == nil {
				silent = !p.round(ctx)
				round.Reset(roundMost)
				break
			}
			wait(ctx, batchFor)
			p.flush(ctx) // the read hears this too, and ends
			p.rest()
		case <-due:
			silent = !p.round(ctx)
			round.Reset(roundMost)
		}
	}
}

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

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// round tells what waits and hears what is new. It reports whether there was anything; a read that failed is for listen
// to look into.
func (p *Peers) round(ctx context.Context) bool {
	p.rest()
	select {
	case <-p.wake: // what it says is told now
	default:
	}
	var r reading
	r.of(p.list())
	told, others, err := p.exchange(ctx, &r)
	return told+others > 0 && err == nil
}

// flush tells all that waits, if Redis is there.
func (p *Peers) flush(ctx context.Context) {
	for more := true; more && p.health.ok(); {
		told, _, _ := p.exchange(ctx, &reading{})
		more = told > 0 && p.waiting() > 0
	}
}

// exchange sends what waits and applies what is new in the streams of r.
func (p *Peers) exchange(ctx context.Context, r *reading) (told, others int, readErr error) {
	now := time.Now()
	var of []*Member
	var all []batch
	for _, m := range p.list() {
		if frames := m.teller.Take(maxBatch, now); len(frames) > 0 {
			of = append(of, m)
			all = append(all, batch{stream: m.stream, frames: frames, most: m.keeps(p.conf.StreamBytes)})
		}
	}
	if len(all)+len(r.members) == 0 {
		return 0, 0, nil
	}
	x := p.link.exchange(ctx, all, r.streams, r.after)
	for i, m := range of {
		if n := x.taken[i]; n > 0 {
			m.teller.Taken(all[i].frames[:n])
			m.wrote(x.last[i])
			told += n
		}
	}
	if x.sendErr != nil && ctx.Err() == nil {
		p.health.fail(x.sendErr, now)
	}
	if len(r.members) > 0 && x.readErr == nil {
		others = p.apply(r, x.got, now)
	}
	return told, others, x.readErr
}

// waiting is how many messages have not been taken.
func (p *Peers) waiting() (n int) {
	for _, m := range p.list() {
		n += m.teller.Stats().Waiting
	}
	return n
}

// beat tells that this router lives, and what it wants, if Redis is there.
func (p *Peers) beat(ctx context.Context) {
	now := time.Now()
	if err := p.agree(ctx); err != nil {
		if ctx.Err() == nil {
			p.health.fail(err, now)
			p.expire(now)
		}
		return
	}
	now = time.Now()
	if since, was := p.health.good(now); was {
		for _, m := range p.list() {
			m.teller.again()   // it may be another Redis, or an older state of it
			m.teller.Open(now) // others have ended what was in flight here
		}
		p.log.Info("history: Redis is back: routers hear each other again", "addr", p.link.addr,
			"after", since.Round(time.Millisecond), "messages_kept", p.waiting())
	}
	for _, m := range p.list() {
		m.tend(p.conf.Name, now)
		m.compare(p.log, now)
	}
	p.expire(now)
}

// expire ends what routers that are not heard have in flight.
func (p *Peers) expire(now time.Time) {
	for _, m := range p.list() {
		for _, name := range m.hearer.Expire(m.heardUntil(), now) {
			p.log.Warn("history: a router is gone: its requests in flight are no longer counted", "pool", m.name,
				"router", name)
		}
	}
}
