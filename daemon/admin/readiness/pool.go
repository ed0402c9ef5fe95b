package readiness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/strategies"
	"github.com/warmpath/warmpath/daemon/fleet/feed"
	"github.com/warmpath/warmpath/daemon/fleet/subset"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// Reasons why a pool cannot serve. Clients see these words on /ready: they name no worker and no model.
const (
	WhyStarting = "no worker has had its first health check yet"
	WhyHearing  = "some workers have not had their first health check yet"
	WhyEmpty    = "no worker is up"
	WhyPanics   = "no worker is up; requests go to workers that are not (panic = true)"
	WhyPrefill  = "no worker is up but those with the role prefill, which answer nobody"
	WhyKey      = "the workers refuse the key that this router sends them (worker_key_file)"
	WhyUnfit    = "no worker lists a model that the pool's patterns fit"
)

// Pool is a pool as an operator sees it.
type Pool struct {
	*route.Pool
	Models   []string // the patterns of the configuration
	Patterns epoch.Patterns
	Events   *feed.Feed                     // of its workers
	Shadows  *strategies.Shadows            // nil = there can be none
	Asking   *epoch.Asking                  // asks its workers; nil = they can be asked nothing
	Queue    *waiting.Queue                 // of its requests; nil = it has none
	Pairing  *epoch.Pairing                 // of its workers' roles; nil = they have none
	Panic    bool                           // while no worker is up, requests go to workers that are down
	Aliases  []Alias                        // that lead to its models
	Refuses  func(url, adapter string) bool // the worker there did not load it; nil = workers load none
	Origin   func(url string) string        // the kind of source that gave the worker there; nil = it is not known
	Failing  string                         // why a source of its workers has no answer now; "" = each has one
	Fences   map[string]worker.Fence        // of keys that may use some workers alone
	Unloaded []string                       // "ADAPTER by WORKER": adapters that workers have refused, in the last minute
	Unwoken  string                         // why the last call of wake_url was not taken; "" = it was, or there was none
	Subset   func() *subset.State           // of the workers; it returns nil if the router uses all
	Outside  int                            // workers that the router does not use
	Leaving  Leaving                        // moves conversations away from workers that leave
	Holds    time.Duration                  // for so long requests wait while no worker is up; 0 = they do not
	Header   time.Duration                  // for so long one waits for its answer at a worker, also at a paused one
}

// Leaving moves conversations away from workers that leave.
type Leaving interface {
	// HandOver drains a worker, and moves its conversations and its streams to others within a time. It returns how many
	// conversations and requests those are, and whether the pool has such a worker.
	HandOver(worker string, within time.Duration) (conversations, requests int, known bool, err error)
	// Stay ends the moves away from a worker that is put back.
	Stay(worker string)
	// Moving returns the workers that conversations move away from or to, in order.
	Moving() []string
}

// Moves says what moves now, and what the moves so far were worth; "" = there was none.
func (p *Pool) Moves() string {
	var now []string
	if p.Leaving != nil {
		now = p.Leaving.Moving()
	}
	c := p.Book.Counts()
	if len(now) == 0 && c.Moved+c.Failed == 0 {
		return ""
	}
	took := time.Duration(0)
	c.EachWay(func(_ string, t time.Duration) { took += t })
	text := fmt.Sprintf("%d conversations moved (%s), %d failed; the requests took %v. %d of them had their next turn "+
		"where they moved to (%s)", c.Moved, sizeOf(c.TokensMoved, c.BytesMoved), c.Failed, took.Round(time.Millisecond),
		c.Used, sizeOf(c.TokensUsed, c.BytesUsed))
	if len(now) > 0 {
		text += "; now away from or to " + strings.Join(now, ", ")
	}
	return text
}

// sizeOf says how large prompts are, and their KV if its bytes are known.
func sizeOf(tokens, bytes int) string {
	if bytes == 0 {
		return fmt.Sprintf("%d tokens", tokens)
	}
	return fmt.Sprintf("%d tokens, %.1f MB of KV", tokens, float64(bytes)/1e6)
}

// WhyNot returns why a pool cannot serve, "" if it can. A worker whose models have not been read yet may have any.
func (p *Pool) WhyNot(stats []worker.Stats) string {
	up, prefillers, deny, starting := 0, 0, 0, false
	for _, s := range stats {
		starting = starting || s.State == worker.Starting && !s.Prefills
		if !s.Up {
			continue
		}
		if s.Prefills {
			prefillers++
			continue
		}
		up++
		if s.DeniesKey {
			deny++
			continue
		}
		if s.Models == nil || slices.ContainsFunc(s.Models, p.Patterns.Serves) {
			return ""
		}
	}
	switch {
	case deny > 0:
		return WhyKey
	case up > 0:
		return WhyUnfit
	case starting:
		return WhyStarting
	case prefillers > 0:
		return WhyPrefill
	}
	return WhyEmpty
}

// Alias is a name that leads to a model. Else serves its requests while no worker has the model; "" = none does.
type Alias struct{ Name, Model, Else string }

// String says where the alias leads.
func (a Alias) String() string { return a.Name + " leads to " + a.Model }

// InWords says where aliases lead.
func InWords(aliases []Alias) (all []string) {
	for _, a := range aliases {
		all = append(all, a.String())
	}
	return all
}

// Astray returns the aliases that lead to a model which no worker lists or may load; none while a worker's list has not
// been read.
func (p *Pool) Astray(stats []worker.Stats) (all []Alias) {
	up := 0
	for _, s := range stats {
		if s.Up && s.Models == nil {
			return nil
		} else if s.Up {
			up++
		}
	}
	for _, a := range p.Aliases {
		lists := func(s worker.Stats) bool {
			return s.Up && (slices.Contains(s.Models, a.Model) || p.Refuses != nil && !p.Refuses(s.URL, a.Model))
		}
		if up > 0 && !slices.ContainsFunc(stats, lists) {
			all = append(all, a)
		}
	}
	return all
}

// ShutOut returns the keys of which some workers are for, none of which is up.
func (p *Pool) ShutOut(stats []worker.Stats) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(p.Fences)) {
		var own []string
		up := false
		for _, s := range stats {
			if !s.Prefills && admits(p.Fences[key], s.Labels) {
				own = append(own, s.ID+" "+s.State.String())
				up = up || s.Up
			}
		}
		if len(own) > 0 && !up {
			all = append(all, key+": "+SomeIDs(own))
		}
	}
	return all
}

// admits reports whether a worker with these labels is inside of a fence.
func admits(f worker.Fence, has map[string]string) bool {
	return !slices.ContainsFunc(f, func(label string) bool {
		name, value, _ := strings.Cut(label, "=")
		return has[name] != value
	})
}

// Empty reports whether no worker that answers clients is up.
func (p *Pool) Empty(now time.Time) bool {
	return empty(p.Workers.Stats(now))
}

func empty(stats []worker.Stats) bool {
	return !slices.ContainsFunc(stats, func(s worker.Stats) bool { return s.Up && !s.Prefills })
}

// paused reports whether a worker is paused that gets the requests which no other one takes.
func paused(stats []worker.Stats) bool {
	return slices.ContainsFunc(stats, func(s worker.Stats) bool {
		return s.Last && s.State == worker.Paused && !s.Prefills
	})
}

// Verdict returns why a pool cannot serve, "" if it can, and whether it serves all the same, by panic alone. One whose
// requests wait for a worker, or at a paused one, can: if a load balancer sent it none, nothing would ask for it. A new
// pool can serve once all its workers have been heard: until then the first worker that is up would get all requests,
// although others hold their prompts.
func (p *Pool) Verdict(stats []worker.Stats) (why string, panics bool) {
	switch why = p.WhyNot(stats); {
	case why == "" && time.Since(p.Workers.Began()) < young && !Heard(stats):
		return WhyHearing, false
	case why != WhyEmpty && why != WhyPrefill:
		return why, false
	case p.panics(stats):
		return WhyPanics, true
	case p.Holds > 0 || paused(stats):
		return "", false
	}
	return why, false
}

// young is how long a pool is new: the 2 s after which a health check without an answer fails, and one more. A worker
// that comes later and has not been heard does not make the pool unready.
const young = 3 * time.Second

// Heard reports whether each worker has had its first health check.
func Heard(stats []worker.Stats) bool {
	return !slices.ContainsFunc(stats, func(s worker.Stats) bool { return s.State == worker.Starting })
}

// Rests reports whether no worker is up, and requests wait for one.
func (p *Pool) Rests(now time.Time) bool {
	stats := p.Workers.Stats(now)
	why, panics := p.Verdict(stats)
	return why == "" && !panics && empty(stats)
}

// RestsWell reports whether Rests is as it should be: no worker has been paused for too long.
func (p *Pool) RestsWell(now time.Time) bool {
	return p.Rests(now) && !slices.ContainsFunc(p.Workers.Stats(now), func(s worker.Stats) bool { return s.Forgotten })
}

// CanServe reports whether the pool is ready in the answer of /ready.
func (p *Pool) CanServe(now time.Time) bool {
	why, panics := p.Verdict(p.Workers.Stats(now))
	return why == "" || panics
}

// panics reports whether a pool with no worker up serves all the same: panic = true is set, and a worker was not
// drained. If a load balancer then stopped sending requests, it would take away the last resort.
func (p *Pool) panics(stats []worker.Stats) bool {
	return p.Panic && slices.ContainsFunc(stats, func(s worker.Stats) bool { return !s.Drained && !s.Prefills })
}

// Waits returns how many requests wait for the pool's workers.
func (p *Pool) Waits() int {
	if p.Queue == nil {
		return 0
	}
	return p.Queue.ForRoom()
}

// maxNamed bounds the workers that a line names.
const maxNamed = 5

// SomeIDs lists the first names, and how many more there are.
func SomeIDs(ids []string) string {
	if more := len(ids) - maxNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(ids[:maxNamed], ", "), more)
	}
	return strings.Join(ids, ", ")
}
