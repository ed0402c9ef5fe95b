package remote

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/parts/goredis"
)

// weigh reads how much the servers keep. A server without an answer or without a limit makes the sum unknown. A
// cluster's replicas keep what its masters keep.
func (s *servers) weigh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	sum := int64(0)
	known := true
	s.each(func(c *redis.Client, n *node) {
		if s.kind == pool && s.config.Pool.Self(n.addr) {
			sum += s.config.Pool.Bytes
			return
		}
		if !n.up() {
			return // its limit is of no use now
		}
		text, err := infoOf(ctx, c, "memory", "replication")
		if role, _ := fieldOf(text, "role"); s.kind == goredis.Cluster && role == "slave" {
			return
		}
		bytes := limitOf(text)
		known = known && err == nil && bytes > 0
		sum += bytes
	})
	if known {
		s.size.Store(sum)
	}
}

// countEvictions reads the servers' eviction counts, and finds the servers that were restarted since. A server that
// reports no count counts as one that evicts. A member of a pool comes back without the values of its memory; for a
// Redis compareMark finds that out.
func (s *servers) countEvictions(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	s.each(func(c *redis.Client, n *node) {
		if !n.up() || s.kind == pool && s.config.Pool.Self(n.addr) {
			return
		}
		text, err := infoOf(ctx, c, "server", "stats")
		run, _ := fieldOf(text, "run_id")
		count, ok := numberOf(text, "evicted_keys")
		if n.evictions.note(run, count, err == nil && ok, time.Now()) && s.kind == pool {
			n.emptied()
		}
	})
}

// infoOf reads sections of a server's INFO. Before version 7 a Redis takes one in a command.
func infoOf(ctx context.Context, c *redis.Client, sections ...string) (text string, err error) {
	answers, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, section := range sections {
			p.Info(ctx, section)
		}
		return nil
	})
	for _, a := range answers {
		text += a.(*redis.StringCmd).Val()
	}
	return text, err
}

// limitOf returns maxmemory from the text of INFO; 0 = there is none.
func limitOf(info string) int64 {
	n, _ := numberOf(info, "maxmemory")
	return max(n, 0)
}

// numberOf returns a number from the text of INFO.
func numberOf(info, name string) (int64, bool) {
	text, ok := fieldOf(info, name)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, ok && err == nil
}

// fieldOf returns a field from the text of INFO.
func fieldOf(info, name string) (string, bool) {
	for line := range strings.Lines(info) {
		if text, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(text), true
		}
	}
	return "", false
}
