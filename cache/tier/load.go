package tier

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

const (
	// scanned is about how many keys a step of Load looks at.
	scanned = 512
	// ahead is the longest value that is read ahead: a session has some 100 bytes. With scanned it bounds a step to 4 MiB.
	ahead = 8 << 10
)

// Load reads into memory what stands in Redis under the prefix, and returns how many values that were. To be called once, after New
// and before the store is used: a router that starts under load would else ask Redis for every session at once, and of what is
// not answered in time nobody could say where it lives. It stops when ctx ends or memory is full, with what has come until
// then; that is no error, since what is missing is read when it is asked for, and so are values over 8 KiB. Without a Redis, or
// with one that is down, it does nothing.
func (s *Store) Load(ctx context.Context) (int, error) {
	if s.l2 == nil {
		return 0, nil
	}
	s.l2.readMark(ctx)
	n := 0
	for cursor := uint64(0); ; {
		keys, next, err := s.l2.c.Scan(ctx, cursor, pattern(s.l2.prefix), scanned).Result()
		if err == nil {
			var m int
			m, err = s.take(ctx, keys)
			n += m
		}
		if err != nil {
			if ctx.Err() != nil {
				return n, nil
			}
			return n, fmt.Errorf("tier: Redis at %s cannot be read ahead: %w", s.l2.addr, err)
		}
		if cursor = next; cursor == 0 || s.l1.evicts() {
			return n, nil
		}
	}
}

// take reads the values of keys in one round trip.
func (s *Store) take(ctx context.Context, keys []string) (n int, err error) {
	if len(keys) == 0 {
		return 0, nil
	}
	values, ttls := make([]*redis.StringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	_, err = s.l2.c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			values[i], ttls[i] = p.GetRange(ctx, key, 0, ahead), p.PTTL(ctx, key)
		}
		return nil
	})
	if err != nil && values[len(keys)-1].Err() != nil && ctx.Err() != nil {
		return 0, err
	}
	now := s.now()
	for i, key := range keys {
		ns, name, ok := s.l2.unkey(key)
		marked, err := values[i].Result()
		if !ok || err != nil || marked == "" || marked[0] != markValue || len(marked) > ahead || !s.l1.fits(name, []byte(marked[1:])) {
			continue // not ours, gone meanwhile, or deleted
		}
		ttl := ttls[i].Val()
		if ttl == -2 { // gone between the two
			continue
		}
		ticket, ok := s.l1.put(ns, name, []byte(marked[1:]), until(now, max(ttl, 0)), now, paid)
		if ok {
			s.l1.told(ns, name, ticket, now)
			n++
		}
	}
	return n, nil
}

// evicts tells whether something has made room for something else.
func (m *memory) evicts() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.evicted > 0
}

// unkey is key the other way round.
func (r *remote) unkey(full string) (ns, key string, ok bool) {
	rest, ok := strings.CutPrefix(full, r.prefix)
	if !ok {
		return "", "", false
	}
	digits, rest, ok := strings.Cut(rest, ":")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 || len(rest) < n+1 || rest[n] != ':' {
		return "", "", false
	}
	return rest[:n], rest[n+1:], true
}

// pattern fits the keys that begin with prefix: what SCAN takes for a wildcard is escaped.
func pattern(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(prefix) + "*"
}
