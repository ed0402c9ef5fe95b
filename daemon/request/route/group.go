package route

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/parts/recent"
	"github.com/warmpath/warmpath/sdk/abi"
)

// The samples of one prompt that a trainer asks for (GRPO) arrive within a moment as so many requests. The first is
// placed like any request, and the others wait a moment for that. To them the prefill of the first is no wait behind
// somebody else, but their own: it does not count in the wait of the first one's worker. So they go there until what is
// queued beside it costs more than a prefill. The prefill at the next worker is then one that the rest can share too.

// HeaderGroup names the group of a request whose prompt is not the same as that of the others.
const HeaderGroup = "X-Warmpath-Group"

const (
	maxGroups = 1 << 12
	placeFor  = 50 * time.Millisecond // the longest wait for the first request of a group to be sent
	nobodyYet = ^uint32(0)            // in place of a slot: the first request is being placed
)

// groups are the prompts that are being computed.
type groups struct {
	mu sync.Mutex // guards of and what is in it
	of *recent.Map[uint64, *sharers]
}

// sharers are the workers that compute the prompt of a group, the newest first.
type sharers [8]sharer

// sharer is one of them. The zero value is none.
type sharer struct {
	slot    uint32
	seconds float32 // that it takes
	until   int64   // when it is done, half a prefill later than was known when it began: nanoseconds of the Unix epoch
}

// isPlaced returns false while the first request of a group is being placed.
func (s *sharers) isPlaced(at int64) bool { return s[0].slot != nobodyYet || s[0].until <= at }

// group returns the name of the request's group; 0 = it belongs to none.
func (c *Choice) group() uint64 {
	if len(c.prompt.Chains) != 1 || len(c.prompt.Chains[0].Hashes) == 0 || c.prompt.BypassesCache {
		return 0
	}
	if c.ask.Headers != nil {
		if name, ok := c.ask.Headers.Header(HeaderGroup); ok && name != "" {
			return hashIn(c.ask.Caller, name) ^ c.spaceID ^ uint64(c.ask.Leg)
		}
	}
	chain := &c.prompt.Chains[0]
	return chain.Hashes[len(chain.Hashes)-1] ^ c.spaceID ^ uint64(chain.Bytes) ^ uint64(c.ask.Leg)
}

// get returns a group, the zero value if it is not known.
func (g *groups) get(name uint64) (s sharers) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known, ok := g.of.Get(name); ok {
		s = *known
	}
	return s
}

// join takes the prefill of c's group out of the waits of the workers that compute it. shares reports whether there is
// one. If there is none, and no worker has the prompt, c is the first request of its group, unless ok is false: then
// another one has become that meanwhile.
func (g *groups) join(c *Choice) (shares, ok bool) {
	name, at := c.group(), c.at.UnixNano()
	if name == 0 || c.ask.By != nil {
		return false, true
	}
	f := &c.fleet.frame
	has := func(i int) bool { return 2*f.Rows[i].Matched() >= f.Header.PromptBlocks }
	warm := false
	for i := 0; i < len(f.Rows) && !warm; i++ {
		warm = has(i)
	}
	if !warm {
		return false, g.lead(c, name, at)
	}
	s := g.get(name)
	for i := range f.Rows {
		row := &f.Rows[i]
		for k := range s {
			if s[k].slot == row.Worker && s[k].until > at && has(i) {
				row.Wait, shares = max(0, row.Wait-float64(s[k].seconds)), true
			}
		}
	}
	return shares, true
}

// lead makes c the first request of a group that no worker has the prompt of. It returns false if another one is being
// placed.
func (g *groups) lead(c *Choice, name uint64, at int64) bool {
	first := sharer{slot: nobodyYet, until: at + int64(placeFor)}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s, known := g.of.Get(name); !known {
		g.of.Put(name, &sharers{first})
	} else if !s.isPlaced(at) && c.ask.Patient {
		return false
	} else {
		*s = sharers{first}
	}
	c.leads = name
	return true
}

// pass lets the next request of the group that c leads be the first, if c has not been sent.
func (g *groups) pass(c *Choice) {
	if c.leads == 0 {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if s, known := g.of.Get(c.leads); known && s[0].slot == nobodyYet {
		g.of.Delete(c.leads)
	}
	c.leads = 0
}

// note records that the worker of a row computes c's prompt, if it computes most of it. seconds is what that takes.
func (g *groups) note(c *Choice, row *abi.Row, seconds float64, at time.Time) {
	name, now := c.group(), at.UnixNano()
	if name == 0 || 2*seconds < row.Slow*c.pool.Workers.Estimate(c.size.all, 0) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	all, n := sharers{{row.Worker, float32(seconds), now + int64((row.Wait+1.5*seconds)*1e9)}}, 1
	s, known := g.of.Get(name)
	if !known {
		g.of.Put(name, &all)
		return
	}
	for _, o := range s {
		if o.slot != row.Worker && o.slot != nobodyYet && o.until > now && n < len(all) {
			all[n] = o
			n++
		}
	}
	*s = all
}
