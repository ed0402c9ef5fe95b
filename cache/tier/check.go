package tier

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/parts/goredis"
)

// checkTime bounds a Check.
const checkTime = 5 * time.Second

// Needs are the commands that a Check tries in addition to a write.
type Needs struct {
	Prefix  string // of the keys, which end by themselves after a few seconds
	Scripts bool   // over two keys
	Streams bool
}

// Needs of the tables of a configuration that name a Redis.
var (
	NeedsOfStore   = Needs{Prefix: "{warmpath}:check", Scripts: true}
	NeedsOfHistory = Needs{Prefix: "{warmpath}/history-check", Streams: true}
)

// Check asks the Redis of a URL for what a router needs of it. The error has the remedy.
func Check(ctx context.Context, url string, security *tls.Config, n Needs) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	c, err := Connect(url, security, Bounds{Bytes: maxLine, Reply: dialTimeout, Pool: dialTimeout, Connections: 1})
	if err != nil {
		return err
	}
	defer c.Close()
	key := n.Prefix
	const life = 5 * time.Second
	err = c.Set(ctx, key, "", life).Err()
	if err == nil && n.Scripts {
		err = c.Eval(ctx, "return redis.call('EXISTS', KEYS[1], KEYS[2])", []string{key, key + "-too"}).Err()
	}
	if err == nil && n.Streams {
		stream := key + "-stream"
		err = c.XAdd(ctx, &redis.XAddArgs{Stream: stream, Values: []string{"f", ""}}).Err()
		if err == nil {
			err = c.Expire(ctx, stream, life).Err()
		}
	}
	if err != nil {
		return fmt.Errorf("the Redis at %s: %w; %s", c.Addr, err, goredis.Remedy(err))
	}
	return nil
}
