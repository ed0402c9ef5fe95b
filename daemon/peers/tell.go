package peers

import (
	"context"
	"time"
)

const (
	beatEvery = time.Second
	batchFor  = 10 * time.Millisecond // what is told waits so long for more
	backOff   = 200 * time.Millisecond
	maxBatch  = 1 << 20 // bytes of one write a pool
)

// tellAll sends what the pools' tellers have, and a beat every second, until ctx ends.
func (p *Peers) tellAll(ctx context.Context) {
	beats := time.NewTicker(beatEvery)
	defer beats.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beats.C:
			if !p.beat(ctx) {
				continue
			}
		case <-p.wake:
			wait(ctx, batchFor)
		}
		if !p.health.ok() {
			continue // the beat finds out when it is back
		}
		if err := p.flush(ctx); err != nil {
			p.health.fail(err, time.Now())
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// flush sends all that waits.
func (p *Peers) flush(ctx context.Context) error {
	for {
		now := time.Now()
		var of []*Member
		var all []batch
		for _, m := range p.list() {
			if frames := m.teller.Take(maxBatch, now); len(frames) > 0 {
				of = append(of, m)
				all = append(all, batch{stream: m.stream, frames: frames, most: m.keeps(p.conf.StreamBytes)})
			}
		}
		if len(all) == 0 {
			return nil
		}
		last, err := p.link.send(ctx, all)
		if err != nil {
			return err
		}
		for i, m := range of {
			m.teller.Taken(all[i].frames)
			m.wrote(last[i])
		}
	}
}

// beat tells that this router lives, and what it wants. It reports whether Redis is there.
func (p *Peers) beat(ctx context.Context) bool {
	if err := p.agree(ctx); err != nil {
		p.health.fail(err, time.Now())
		p.expire(time.Now())
		return false
	}
	now := time.Now()
	if since, was := p.health.good(now); was {
		waiting := 0
		for _, m := range p.list() {
			waiting += m.teller.Stats().Waiting
			m.teller.Open(now) // others have ended what was in flight here
		}
		p.log.Info("history: Redis is back: routers hear each other again", "addr", p.link.addr,
			"after", since.Round(time.Millisecond), "messages_kept", waiting)
	}
	for _, m := range p.list() {
		m.tend(p.conf.Name, now)
		m.compare(p.log, now)
	}
	p.expire(now)
	return true
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
