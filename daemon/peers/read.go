package peers

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// minReplay is the least number of bytes of a stream that a joining router reads, however small its fleet: they hold
// the beginnings of chains that other routers name.
const minReplay = 16 << 20

// listen waits for new entries in any stream, and applies them. If a pool has just joined, it reads the older entries
// first.
func (p *Peers) listen(ctx context.Context) error {
	for _, m := range p.list() {
		if m.replayPending() {
			err := p.replay(ctx, m)
			if isReply(err) {
				m.markReadRefused(p.log, err, time.Now())
			} else if err != nil {
				return err
			}
		}
	}
	var r reading
	if r.of(p.list()); len(r.members) == 0 {
		wait(ctx, readBlock)
		return nil
	}
	asked := time.Now()
	got, err := p.link.read(ctx, r.streams, r.after, readCount, readBlock)
	if tooLarge(err) || isReply(err) {
		return p.readApart(ctx, r.members)
	}
	if err != nil {
		return err
	}
	p.applyEntries(&r, got, asked)
	return nil
}

// readApart reads each pool's stream in a call of its own, so that one unreadable stream does not block the others.
func (p *Peers) readApart(ctx context.Context, members []*Member) error {
	for _, m := range members {
		err := p.readSmall(ctx, m)
		if isReply(err) {
			m.markReadRefused(p.log, err, time.Now())
		} else if err != nil {
			return err
		}
	}
	return nil
}

// readSmall reads a pool's stream, with fewer entries at a time until they fit into a reply. It skips an entry that
// does not fit alone.
func (p *Peers) readSmall(ctx context.Context, m *Member) error {
	var r reading
	r.add(m)
	for n := int64(readCount); n > 0; n = smaller(n) {
		got, err := p.link.read(ctx, r.streams, r.after, n, -1)
		if err == nil {
			p.applyEntries(&r, got, time.Time{})
		}
		if !tooLarge(err) {
			return err
		}
	}
	id, err := p.link.idOf(ctx, "XRANGE", m.stream, "("+m.readAfter(), "+")
	if err != nil {
		id = p.link.idAt(time.Now()) // scripts are not allowed: all entries up to now are lost
	}
	m.logUnreadable(p.log, id)
	m.skipTo(id)
	return nil
}

// reading lists the streams to read, and the entry after which each read begins.
type reading struct {
	members        []*Member
	streams, after []string
}

// of adds the pools that have read their older entries.
func (r *reading) of(all []*Member) {
	for _, m := range all {
		if m.readsNew() {
			r.add(m)
		}
	}
}

func (r *reading) add(m *Member) {
	r.members = append(r.members, m)
	r.streams = append(r.streams, m.stream)
	r.after = append(r.after, m.readAfter())
}

// applyEntries enters the entries that were read into the pools' books, and returns how many of them other routers
// sent. asked is when the read began; the zero time if the streams may hold more.
func (p *Peers) applyEntries(r *reading, got map[string][]message, asked time.Time) (others int) {
	p.health.goodRead()
	for _, m := range r.members {
		all := got[m.stream]
		for _, e := range all {
			now := time.Now()
			sent := p.link.timeOf(e.id, now)
			own, err := m.receiver.applyUnlessOwn(e.frame, sent, now)
			m.logRefused(p.log, e, err, now)
			m.recordRead(e, sent)
			if !own {
				others++
			}
		}
		if len(all) < readCount && !asked.IsZero() {
			m.caughtUp(asked)
		}
	}
	return others
}

// replay applies a pool's stream from as far back as its workers can still hold the chains. It reads the newest pages
// first: they matter most if a later read fails. It applies them in the order in which they were sent.
func (p *Peers) replay(ctx context.Context, m *Member) error {
	began := time.Now()
	want := max(minReplay, m.heldBytes())
	if p.conf.StreamBytes > 0 {
		want = min(want, p.conf.StreamBytes)
	}
	back, err := p.link.readBack(ctx, m.stream, want, m.setFound, func(id string) { m.logUnreadable(p.log, id) })
	if err != nil {
		if len(back) == 0 || ctx.Err() != nil {
			return err
		}
		p.log.Warn("history: a part of the older messages of other routers cannot be read: this one begins with the newest",
			"pool", m.name, "messages", len(back), "err", err)
	}
	slices.Reverse(back)
	m.receiver.setOwnWorkers(named(m.pool, m.pool.Secret(), began))
	m.receiver.BeginReplay()
	defer func() { m.receiver.EndReplay(time.Now()) }()
	for i, e := range back {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		now := time.Now()
		sent := p.link.timeOf(e.id, now)
		_ = m.receiver.Apply(e.frame, sent, now)
		m.recordRead(e, sent)
		m.setReplayed(i + 1)
	}
	m.endReplay(began)
	if len(back) > 0 {
		p.log.Info("history: the older messages of other routers are applied", "pool", m.name, "messages", len(back),
			"took", time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// idAt returns the id that an entry added at that time would get.
func (l *link) idAt(at time.Time) string {
	return strconv.FormatInt(at.Add(time.Duration(l.offset.Load())).UnixMilli(), 10) + "-0"
}
