// Package goredis has what the clients of Redis in this program have in common, all of which are go-redis's.
package goredis

import (
	"context"
	"sync"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// plain makes a client send each command once, in RESP2, within its context's deadline, and nothing of its own.
func plain(opt *redis.Options) {
	silence()
	opt.MaxRetries = -1
	opt.DialerRetries = 1
	opt.ContextTimeoutEnabled = true
	opt.Protocol = 2 // so that replies need no search for push messages
	opt.DisableIdentity = true
	opt.PipelinePoolSize = -1
	opt.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// silence turns off the library's log lines, one for every failed dial: its users log an outage once. The library has
// one logger for the whole process, so it is left alone until a Redis is configured.
var silence = sync.OnceFunc(func() { redis.SetLogger(noLines{}) })

type noLines struct{}

// Printf drops the line.
func (noLines) Printf(context.Context, string, ...any) {}

// PoolFits reports whether a pool_size of a URL is in range; 0 = the URL has none. The library panics at some others.
func PoolFits(size int) bool { return size >= 0 && size <= 65_536 }
