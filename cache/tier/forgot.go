package tier

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Redis that was flushed, or that came back without its file, answers "nothing" for keys that other routers still hold. It must
// not be believed before they have put back what they hold. So a random mark stands in Redis, without expiry: who finds
// another one there, or none, knows that Redis has forgotten. From then on:
//
//  1. scripts of a router that knows the old mark answer u in place of n: the store is silent on what Redis does not have;
//  2. at its next pulse each router puts back all that it holds, where nothing stands;
//  3. after relearn the router takes the new mark for its own, and "nothing" is believed again.
//
// A router that has just started has no mark to compare: it takes the one that it finds, or makes one.
//
// A Redis that comes back after it was lost is doubted in the same way, as long, though it has forgotten nothing: other routers
// may not have told it yet what they did meanwhile.
const (
	epochKey = "epoch"
	// relearn is for how long a Redis that has forgotten is not believed: twenty pulses, for routers that are slow to see it.
	relearn = 20 * probeEvery
)

// epoch is the mark that Redis is taken to have.
type epoch struct {
	mu    sync.Mutex // guards what follows
	mark  string     // "" = none was seen yet
	since time.Time  // another one was found then; zero: none was
	until time.Time  // Redis is doubted until then
}

// doubted stands in no Redis: to a script that is given it Redis has forgotten.
const doubted = "?"

// known is the mark for a script of a request.
func (e *epoch) known() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().Before(e.until) {
		return doubted
	}
	return e.mark
}

// told is the mark for what this router has to tell: that waits for nobody else.
func (e *epoch) told() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mark
}

// doubt begins when Redis is back.
func (e *epoch) doubt(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.until = now.Add(relearn)
}

// found compares the mark in Redis with the known one. lost: Redis has forgotten, and it was noticed just now.
func (e *epoch) found(mark string, now time.Time) (lost bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case mark == e.mark:
		e.since = time.Time{}
	case e.mark == "", !e.since.IsZero() && now.Sub(e.since) >= relearn:
		e.mark, e.since = mark, time.Time{}
	case e.since.IsZero():
		e.since = now
		return true
	}
	return false
}

// remind reads the mark, makes one where there is none, and puts back what memory holds if Redis has forgotten it. False: Redis
// did not answer.
func (s *Store) remind(ctx context.Context) bool {
	if !s.l2.readMark(ctx) {
		return true
	}
	s.conf.Log.Warn("tier: Redis has lost its data; what memory holds is put back", "addr", s.l2.addr)
	for all := s.l1.all(); len(all) > 0; all = all[min(batch, len(all)):] {
		if _, ok := s.tell(ctx, s.l1.holds(all[:min(batch, len(all))], s.now())); !ok {
			s.l2.epoch.again()
			return false
		}
	}
	return true
}

// readMark tells whether Redis was found to have forgotten just now.
func (r *remote) readMark(ctx context.Context) (lost bool) {
	ctx, cancel := context.WithTimeout(ctx, healTimeout)
	defer cancel()
	key := r.prefix + epochKey
	var stands *redis.StringCmd
	if _, err := r.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.SetNX(ctx, key, rand.Text(), 0)
		stands = p.Get(ctx, key)
		return nil
	}); err != nil {
		return false
	}
	return stands.Val() != "" && r.epoch.found(stands.Val(), time.Now())
}

// again makes the next pulse put all back once more.
func (e *epoch) again() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.since = time.Time{}
}

// holds returns the entries that L2 has confirmed once, as changes that give way to what stands there.
func (m *memory) holds(entries []*entry, now int64) []change {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]change, 0, len(entries))
	for _, e := range entries {
		if e.at != gone && !e.dead && e.expires > now && (e.owes == paid || e.owes == oweTouch) {
			all = append(all, change{entry: e, ns: e.space.name, key: e.key, value: e.value, expires: e.expires,
				ttl: left(now, e.expires), owes: oweTouch, version: e.version})
		}
	}
	return all
}
