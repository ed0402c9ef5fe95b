package tier

import (
	"bytes"
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// change is what L2 has to be told of an entry, as it stood at a version.
type change struct {
	entry       *entry
	ns, key     string
	value, base []byte
	expires     int64
	ttl         time.Duration
	owes        debt
	version     uint32
}

// debtors returns the entries that owe something now.
func (m *memory) debtors() []*entry {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*entry, 0, len(m.owing))
	for e := range m.owing {
		all = append(all, e)
	}
	return all
}

// debts returns the changes of those entries that still owe them.
func (m *memory) debts(entries []*entry, now int64) []change {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]change, 0, len(entries))
	for _, e := range entries {
		switch {
		case e.at == gone || e.owes == paid:
		case e.expires <= now:
			m.expireNow(e)
		default:
			all = append(all, change{entry: e, ns: e.space.name, key: e.key, value: e.value, base: e.base, expires: e.expires,
				ttl: left(now, e.expires), owes: e.owes, version: e.version})
		}
	}
	return all
}

// tell writes changes in one round trip, and returns how many L2 has taken, or answered with what it holds in their place. False:
// L2 did not answer all of them.
func (s *Store) tell(ctx context.Context, debts []change) (told int, ok bool) {
	if len(debts) == 0 {
		return 0, true
	}
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	answers := make([]*redis.Cmd, len(debts))
	_, err := s.l2.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range debts {
			answers[i] = s.l2.put(ctx, p, &debts[i])
		}
		return nil
	})
	now := s.now()
	for i, a := range answers {
		res, bad := a.Slice()
		if bad != nil {
			continue
		}
		r, bad := s.l2.parse(res)
		if bad == nil && r.kind != 'u' && s.l1.answered(&debts[i], r, now) {
			told++
		}
	}
	return told, err == nil
}

// put is one change in a batch. Scripts go whole: a restarted Redis knows none, and a batch cannot ask twice.
func (r *remote) put(ctx context.Context, p redis.Pipeliner, d *change) *redis.Cmd {
	keys, epoch := []string{r.key(d.ns, d.key), r.prefix + epochKey}, r.epoch.told()
	var base any = ""
	if d.base != nil {
		base = marked(d.base)
	}
	switch d.owes {
	case oweDelete:
		return scriptDelete.Eval(ctx, p, keys, millis(d.ttl), "", epoch)
	case oweDrop:
		return scriptDelete.Eval(ctx, p, keys, millis(d.ttl), base, epoch)
	case oweTouch:
		return scriptProlong.Eval(ctx, p, keys, marked(d.value), millis(d.ttl), epoch)
	case oweSwap:
		return scriptYield.Eval(ctx, p, keys, base, marked(d.value), millis(d.ttl), epoch)
	}
	return scriptSet.Eval(ctx, p, keys, marked(d.value), millis(d.ttl), epoch)
}

// answered takes over what L2 said to a change. What was changed here meanwhile stays owed, and is told with what L2 is now
// known to have.
func (m *memory) answered(d *change, r reply, now int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := d.entry
	if e.at == gone {
		return true
	}
	other := r.kind == 'v' && !bytes.Equal(r.value, d.value)
	switch {
	case e.version != d.version:
		if (e.owes == oweSwap || e.owes == oweDrop) && !other && r.kind != 't' {
			e.base = d.value
		}
		return false
	case e.dead:
		m.drop(e)
	case other:
		*m.slot(d.ns, d.key)++
		m.store(d.ns, d.key, r.value, until(now, r.ttl), now, paid)
	case r.kind == 't':
		m.drop(e)
	case e.expires != d.expires:
		m.owe(e, oweTouch)
	default:
		e.base = nil
		m.owe(e, paid)
	}
	return true
}
