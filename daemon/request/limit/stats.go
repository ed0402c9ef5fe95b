package limit

import (
	"math"
	"time"
)

// Used counts what a key has taken since the start of the process.
type Used struct {
	Requests uint64        // that a worker got and that have ended
	Tokens   float64       // of these, as they count
	Over     [Count]uint64 // requests that were refused, by the limit
}

// Stats are a key's limits and what it has taken.
type Stats struct {
	Key      string
	Limits   Limits
	InFlight int // at this router
	Used     Used
	Requests Room
	Tokens   Room
}

// Room is what is left of a limit of a minute.
type Room struct {
	Limit     int           // 0 = there is no limit
	Remaining int           // of the last 60 s; 0 = no request is let in now
	Reset     time.Duration // until a request is let in again, or, if one is let in now, until all of it is there again
}

// Stats returns the figures of all keys with limits, by their names.
func (b *Book) Stats(at time.Time) []Stats {
	keys := b.list()
	all := make([]Stats, len(keys))
	for i, k := range keys {
		k.mu.Lock()
		all[i] = Stats{Key: k.name, Limits: k.limits, InFlight: k.inFlight, Used: k.used,
			Requests: k.requests.left(at), Tokens: k.tokens.left(at)}
		k.mu.Unlock()
	}
	return all
}

// Rooms returns what is left of the requests and of the tokens a minute.
func (k *Key) Rooms(at time.Time) (requests, tokens Room) {
	if k == nil {
		return Room{}, Room{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.requests.left(at), k.tokens.left(at)
}

// left returns what is left of the limit.
func (m *meter) left(at time.Time) Room {
	if m.limit == 0 {
		return Room{}
	}
	r := Room{Limit: int(m.limit), Reset: m.wait(at)}
	if r.Reset == 0 {
		r.Remaining = max(1, int(math.Floor(m.share.of(m.limit, at)-m.minute.sum)))
		r.Reset = m.minute.empty(at)
	}
	return r
}
