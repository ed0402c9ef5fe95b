package tier

import (
	"log/slog"
	"math"
	"time"
)

const (
	// fresh is for how long L1 answers by itself for a value that L2 shares with other routers: a session closed on one is
	// unknown to the others after at most that. One round trip a second for each session in use.
	fresh = time.Second
	// minTombstone is how long L1 remembers a deletion that Redis was not told of, where the expiry is not known here.
	minTombstone = time.Minute
	// maxTombstone is how long a deletion of a value without expiry is remembered.
	maxTombstone = 24 * time.Hour
)

// Config says where values are kept. The zero value keeps them in 64 MiB of memory.
type Config struct {
	MaxBytes int           // L1: keys, values and overhead, in bytes; one namespace may hold half of it. Default 64 MiB
	Redis    string        // L2: redis://, rediss:// or unix:// URL; "" (default) for none. Its password is never logged
	Prefix   string        // of every key in Redis; default "warmpath:". Routers that share values have the same
	Timeout  time.Duration // of a request's time that L2 may take in one call; default 5 ms
	Log      *slog.Logger  // told once when L2 is lost and once when it is back; default slog.Default()
}

// Store keeps small values with a TTL, in memory and, if configured, in Redis. It is safe for concurrent use.
//
// A ttl of 0 or less means no expiry. Values returned are shared: do not change them; values given are copied. No call
// fails or waits because of Redis, but Find may say that nobody knows: see the package comment. A value larger than half of MaxBytes is refused, and counted.
type Store struct {
	conf  Config
	start time.Time
	l1    *memory
	l2    *remote       // nil: none
	owed  chan struct{} // a change that Redis was to be told of failed: the healer need not wait for its pulse
	n     counters
}

// New makes a store. It fails on a bad URL only, never because Redis is down, and does not wait for it. Call Run.
func New(conf Config) (*Store, error) {
	if conf.MaxBytes <= 0 {
		conf.MaxBytes = 64 << 20
	}
	if conf.Prefix == "" {
		conf.Prefix = "warmpath:"
	}
	if conf.Timeout <= 0 {
		conf.Timeout = 5 * time.Millisecond
	}
	if conf.Log == nil {
		conf.Log = slog.Default()
	}
	s := &Store{conf: conf, start: time.Now(), l1: newMemory(conf.MaxBytes), owed: make(chan struct{}, 1)}
	if conf.Redis == "" {
		return s, nil
	}
	var err error
	if s.l2, err = newRemote(conf); err != nil {
		return nil, err
	}
	s.l2.onOpen = func(err error) {
		conf.Log.Warn("tier: Redis is lost; memory alone serves, and Redis is told later", "addr", s.l2.addr, "err", err)
	}
	return s, nil
}

// Close closes the connections to Redis. What it was not told is lost to other routers.
func (s *Store) Close() error {
	if s.l2 == nil {
		return nil
	}
	return s.l2.c.Close()
}

// now is the store's clock: nanoseconds since its start, steady when the wall clock is set.
func (s *Store) now() int64 { return int64(time.Since(s.start)) }

// until is the expiry of a value written now.
func until(now int64, ttl time.Duration) int64 {
	if ttl <= 0 || int64(ttl) > math.MaxInt64-now {
		return never
	}
	return now + int64(ttl)
}

// left is the TTL until an expiry; 0 if there is none.
func left(now, expires int64) time.Duration {
	if expires == never {
		return 0
	}
	return time.Duration(max(expires-now, int64(time.Millisecond)))
}
