package remote

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// FlushCommand is the command to a member of a pool at its door: FlushCommand PREFIX AFTER. The member deletes a page
// of its own keys with the prefix, and returns how many it deleted and where the next page begins, or "" after the last
// page.
const FlushCommand = "WARMPATH.FLUSH"

// scanCount is how many keys a Redis visits in one SCAN: below a millisecond, in which it serves no other command.
const scanCount = 1000

// flush deletes all keys with a prefix at the servers, whoever put them there.
type flush struct {
	servers *servers
	prefix  string                // of the store's keys
	found   func(key string) bool // called for each key that a Redis has; false = the key does not count
	deleted atomic.Int64
}

// run sends the deletions to all servers. A server that is down keeps its keys, which is an error.
func (f *flush) run(ctx context.Context) error {
	switch c := f.servers.client.(type) {
	case *redis.ClusterClient:
		return c.ForEachMaster(ctx, f.scan)
	case *redis.Client:
		return f.scan(ctx, c)
	}
	var asking sync.WaitGroup
	var mu sync.Mutex // guards all
	var all []error
	f.servers.each(func(c *redis.Client, n *node) {
		if f.servers.config.Pool.Self(n.addr) {
			return
		}
		asking.Go(func() {
			if err := f.askMember(ctx, c); err != nil {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Errorf("member %s: %w", n.addr, err))
			}
		})
	})
	asking.Wait()
	return errors.Join(all...)
}

// scan deletes the keys of one Redis.
func (f *flush) scan(ctx context.Context, c *redis.Client) error {
	match := escapeGlob(f.servers.prefix+f.prefix) + "*"
	for cursor := uint64(0); ; {
		names, next, err := c.Scan(ctx, cursor, match, scanCount).Result()
		if err != nil {
			return err
		}
		if err := f.unlink(ctx, c, names); err != nil {
			return err
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// unlink deletes keys of one Redis, each with a command of its own: in a cluster they have different slots.
func (f *flush) unlink(ctx context.Context, c *redis.Client, names []string) error {
	if len(names) == 0 {
		return nil
	}
	gone := make([]*redis.IntCmd, len(names))
	_, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, name := range names {
			gone[i] = p.Unlink(ctx, name)
		}
		return nil
	})
	for i, name := range names {
		if gone[i] == nil || gone[i].Val() == 0 {
			continue
		}
		if key := strings.TrimPrefix(name, f.servers.prefix); key != markKey && f.found(key) {
			f.deleted.Add(1)
		}
	}
	return err
}

// askMember makes one member delete its own keys, page by page.
func (f *flush) askMember(ctx context.Context, c *redis.Client) error {
	for after := ""; ; {
		page, err := c.Do(ctx, FlushCommand, f.prefix, after).Slice()
		if err != nil {
			return err
		}
		if len(page) != 2 {
			return errFlush
		}
		n, isNumber := page[0].(int64)
		next, isText := page[1].(string)
		if !isNumber || !isText {
			return errFlush
		}
		f.deleted.Add(n)
		if next == "" {
			return nil
		}
		after = next
	}
}

var errFlush = errors.New("remote: a member does not answer a flush as one of this version does")

// escapeGlob makes SCAN match a prefix literally.
func escapeGlob(prefix string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(prefix)
}
