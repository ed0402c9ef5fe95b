package tier

import (
	"math"
	"time"
)

const (
	never = math.MaxInt64     // an expiry that does not come
	doubt = math.MinInt64 / 2 // a check so long ago that Redis is asked again; no clock overflows with it
)

// clock counts nanoseconds since a store's start. It is steady while the wall clock is set: an expiry is a time of this
// clock, and Redis is given the rest of a life, never a date.
type clock struct {
	start time.Time
	read  func() time.Time
}

func (c clock) now() int64 { return int64(c.read().Sub(c.start)) }

// date returns an expiry as a time of day, by the wall clock as it is set now; the zero time for none.
func (c clock) date(expires int64) time.Time {
	if expires == never {
		return time.Time{}
	}
	wall := c.read()
	return wall.Add(time.Duration(expires) - wall.Sub(c.start))
}

// until returns the expiry of a value written now.
func until(now int64, ttl time.Duration) int64 {
	if ttl <= 0 || int64(ttl) > math.MaxInt64-now {
		return never
	}
	return now + int64(ttl)
}

// left returns the TTL until an expiry; 0 for none.
func left(now, expires int64) time.Duration {
	if expires == never {
		return 0
	}
	return time.Duration(max(expires-now, int64(time.Millisecond)))
}
