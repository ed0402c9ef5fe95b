package remote

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// evictions is what is known of the values that a server has evicted. It says how many, and not which.
type evictions struct {
	mu    sync.Mutex // guards all below
	known bool
	count int64
	last  time.Time // that it had become more, or was not known
}

// note takes over what the server says; known = false: it does not say.
func (e *evictions) note(count int64, known bool, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !known || !e.known || count != e.count {
		e.last = now
	}
	e.known, e.count = known, count
}

// since reports whether the server may have evicted something after a time.
func (e *evictions) since(unixNano int64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return !e.known || unixNano <= e.last.UnixNano()
}

// steady reports whether the key's server has evicted nothing since the fact was known. It never waits.
func (s *servers) steady(key string, f fact) bool {
	_, n := s.owner(key)
	return n != nil && !n.evictions.since(f.at)
}

// countEvictions asks the servers that answer. What one does not say is taken for an eviction.
func (s *servers) countEvictions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	s.each(func(c *redis.Client, n *node) {
		if !n.up() || s.kind == pool && s.config.Pool.Self(n.addr) {
			return
		}
		text, err := c.Info(ctx, "stats").Result()
		count, ok := numberOf(text, "evicted_keys")
		n.evictions.note(count, err == nil && ok, time.Now())
	})
}
