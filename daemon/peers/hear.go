package peers

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// minReplay is read of a stream at least by a router that joins, however small its fleet: the beginnings of chains that
// others name are in there.
const minReplay = 16 << 20

// gathering is the pause after a read: without it each batch of each router is a read of its own, and the reads cost
// more than all else. What is heard 20 ms late serves as well as what is heard at once.
const gathering = 10 * time.Millisecond

// hearAll reads the pools' streams until ctx ends.
func (p *Peers) hearAll(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.hearSome(ctx); err != nil {
			p.health.failRead(err, time.Now())
			wait(ctx, backOff)
			continue
		}
		wait(ctx, gathering)
	}
}

// hearSome waits for what is new in any stream, and applies it. A pool that has just joined gets what was there before.
func (p *Peers) hearSome(ctx context.Context) error {
	all := p.list()
	if len(all) == 0 {
		wait(ctx, readBlock)
		return nil
	}
	var streams, after []string
	for _, m := range all {
		if m.joins() {
			if err := p.replay(ctx, m); err != nil {
				return err
			}
		}
		streams = append(streams, m.stream)
		after = append(after, m.position())
	}
	asked := time.Now()
	got, err := p.link.read(ctx, streams, after)
	if err != nil {
		if tooLarge(err) { // somebody has written what nobody can read: go on behind it
			for _, m := range all {
				m.skip(p.link.now(time.Now()))
			}
		}
		return err
	}
	p.health.goodRead()
	for _, m := range all {
		entries := got[m.stream]
		for _, e := range entries {
			now := time.Now()
			sent := p.link.local(e.id, now)
			m.gripe(p.log, e, m.hearer.Hear([]byte(e.frame), sent, now), now)
			m.heard(e, sent)
		}
		if len(entries) < readCount {
			m.caughtUp(asked)
		}
	}
	return nil
}

// replay applies what is in a pool's stream, from as far back as its workers can still hold it. The newest pages are
// read first, as they matter most if the rest cannot be read; they are applied in the order in which they were told.
func (p *Peers) replay(ctx context.Context, m *Member) error {
	began := time.Now()
	want := max(minReplay, m.holds())
	if p.conf.StreamBytes > 0 {
		want = min(want, p.conf.StreamBytes)
	}
	var back []entry
	for bytes, id := 0, "+"; bytes < want; {
		page, err := p.link.before(ctx, m.stream, id)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			bytes += len(e.frame)
		}
		back = append(back, page...)
		id = page[len(page)-1].id
		m.reading(len(back))
	}
	slices.Reverse(back)
	m.hearer.Replay()
	defer func() { m.hearer.Live(time.Now()) }()
	for i, e := range back {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now := time.Now()
		sent := p.link.local(e.id, now)
		_ = m.hearer.Hear([]byte(e.frame), sent, now)
		m.heard(e, sent)
		m.replayed(i + 1)
	}
	m.joined(began)
	if len(back) > 0 {
		p.log.Info("history: what other routers told before is known", "pool", m.name, "messages", len(back),
			"took", time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// now is the id of an entry that would be added now.
func (l *link) now(at time.Time) string {
	return strconv.FormatInt(at.Add(time.Duration(l.offset.Load())).UnixMilli(), 10) + "-0"
}
