package route

import (
	"hash/maphash"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/warmpath/warmpath/host"
)

// Canary is a strategy that serves a part of the pool's requests, chosen by Percent, Header or Caller.
type Canary struct {
	Strategy *host.Current
	Percent  float64 // of the sessions, and of the requests that have none
	Header   string  // name of a field, in lower case; "" = none
	Value    string  // that the field has
	Caller   string  // name of the client's key; "" = none
}

// canarySeed makes the hashes that choose a session's canary. It is random, so that no client can make up a session for
// one.
var canarySeed = maphash.MakeSeed()

// takes reports whether the canary serves the request. By percent it takes the part that begins at from, the sum of the
// canaries before it. So a session keeps its strategy for as long as this process lives and these percents stay.
func (c *Canary) takes(a *Ask, session string, from float64) bool {
	switch {
	case c.Caller != "":
		return a.Caller == c.Caller
	case c.Header != "":
		if a.Headers == nil {
			return false
		}
		v, ok := a.Headers.Header(c.Header)
		return ok && strings.TrimSpace(v) == c.Value
	case c.Percent <= 0:
		return false
	}
	drawn := 100 * chance(a.Turn, session)
	return drawn >= from && drawn < from+c.Percent
}

// chance makes a number from 0 to 1 of a session, or of the turn of a request that has none.
func chance(turn uint64, session string) float64 {
	hash := maphash.Comparable(canarySeed, turn)
	if session != "" {
		hash = maphash.String(canarySeed, session)
	}
	return float64(hash>>11) / (1 << 53)
}

// part describes the requests that the canary takes.
func (c *Canary) part() string {
	switch {
	case c.Header != "":
		return c.Header + "=" + c.Value
	case c.Caller != "":
		return "key " + c.Caller
	}
	return strconv.FormatFloat(c.Percent, 'g', -1, 64) + " %"
}

// canaries are those of a pool.
type canaries struct{ all atomic.Pointer[[]Canary] }

// list returns the canaries in their order.
func (c *canaries) list() []Canary {
	if all := c.all.Load(); all != nil {
		return *all
	}
	return nil
}

// serving returns what serves the request: the first canary that takes it, else own.
func (c *canaries) serving(own *host.Current, a *Ask, session string) *host.Current {
	all := c.list()
	from := 0.
	for i := range all {
		if all[i].takes(a, session, from) {
			return all[i].Strategy
		}
		from += all[i].Percent
	}
	return own
}
