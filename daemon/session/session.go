package session

import (
	"container/list"
	"sync"
	"time"
)

// Stats counts what happened since the start.
type Stats struct {
	Live                            int
	Bound, Rebound, Expired, Forced uint64 // Forced: dropped because the table was full
}

// Table maps session keys to worker ids. It is safe for concurrent use.
type Table struct {
	ttl time.Duration
	max int

	mu    sync.Mutex // guards everything below
	byKey map[string]*list.Element
	lru   list.List // of *binding, most recently used first
	stats Stats
}

type binding struct {
	key, worker string
	used        time.Time
}

// New makes a table whose bindings last ttl after their last use (default 30 min), at most max of them (default 1,000,000).
func New(ttl time.Duration, max int) *Table {
	if ttl <= 0 {
		ttl = 30 * time.Minute
	}
	if max <= 0 {
		max = 1_000_000
	}
	return &Table{ttl: ttl, max: max, byKey: map[string]*list.Element{}}
}

// Worker returns the id of the worker that key is bound to, and refreshes the binding. No binding: "".
func (t *Table) Worker(key string, now time.Time) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.byKey[key]
	if !ok {
		return ""
	}
	b := e.Value.(*binding)
	if now.Sub(b.used) >= t.ttl {
		t.drop(e)
		t.stats.Expired++
		return ""
	}
	b.used = now
	t.lru.MoveToFront(e)
	return b.worker
}

// Bind binds key to worker, whatever it was bound to.
func (t *Table) Bind(key, worker string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expire(now)
	if e, ok := t.byKey[key]; ok {
		b := e.Value.(*binding)
		if b.worker != worker {
			b.worker = worker
			t.stats.Rebound++
		}
		b.used = now
		t.lru.MoveToFront(e)
		return
	}
	if len(t.byKey) >= t.max {
		t.drop(t.lru.Back())
		t.stats.Forced++
	}
	t.byKey[key] = t.lru.PushFront(&binding{key, worker, now})
	t.stats.Bound++
}

// expire drops a few bindings whose time is over, so that the table shrinks without a sweep. The caller holds mu.
func (t *Table) expire(now time.Time) {
	for range 4 {
		e := t.lru.Back()
		if e == nil || now.Sub(e.Value.(*binding).used) < t.ttl {
			return
		}
		t.drop(e)
		t.stats.Expired++
	}
}

func (t *Table) drop(e *list.Element) {
	delete(t.byKey, e.Value.(*binding).key)
	t.lru.Remove(e)
}

// Stats returns the counts so far.
func (t *Table) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats
	s.Live = len(t.byKey)
	return s
}
