package tier

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/warmpath/warmpath/cache/goredis"
)

// checkTime bounds a Check.
const checkTime = 5 * time.Second

// Check asks the Redis of a URL for what a router needs of it: a write, a script over two keys of one slot, and streams.
// The error says what to do. Its keys end by themselves after a few seconds.
func Check(ctx context.Context, url string, security *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c, err := Connect(url, security, Bounds{Bytes: maxLine, Reply: dialTimeout, Pool: dialTimeout, Connections: 1})
	if err != nil {
		return err
	}
	defer c.Close()
	key := c.Prefix("warmpath:") + "check"
	const life = 5
	err = c.Set(ctx, key, "", life*time.Second).Err()
	if err == nil {
		err = c.Eval(ctx, "return redis.call('EXISTS', KEYS[1], KEYS[2])", []string{key, key + "-too"}).Err()
	}
	if err == nil {
		err = c.Eval(ctx, "redis.call('XADD', KEYS[1], '*', 'f', ''); return redis.call('EXPIRE', KEYS[1], ARGV[1])",
			[]string{key + "-stream"}, life).Err()
	}
	if err != nil {
		return fmt.Errorf("the Redis at %s: %w; %s", c.Addr, err, goredis.Remedy(err))
	}
	return nil
}
