package lab

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/peers"
	"github.com/warmpath/warmpath/daemon/lab/served"
	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// Strategy is one column: a rule, and which tiers its workers have.
type Strategy struct {
	Name string // as the caller wrote it
	Peer bool   // it is of others
	spec served.Spec
	peer peers.Variant
	tier tiers

	names served.Names // of sessions

	routers int           // 0 = as the scenario has it
	history time.Duration // on its way from one to the others; 0 = they share nothing
	subset  int           // of how many workers each router makes use; 0 = of all
	queue   bool          // requests wait in the router, not at the workers
	parts   parts

	handOver bool // conversations move away from workers that leave
}

// parts is who computes prompts in a scenario with roles.
type parts uint8

const (
	byRule     parts = iota
	never            // there are no roles: each worker does both
	whenever         // prefillers do, from the threshold on
	byLearning       // by the rule, which learns what the transfer takes
	sharing          // likewise, and prefillers answer too
)

var partsNames = map[string]parts{"colocated": never, "split": whenever, "learnt": byLearning,
	"answering": sharing}

// Allow lets a module use what entries name, as strategies.NAME.allow does.
func (s *Strategy) Allow(entries []string) {
	s.spec.Allow = entries
	for i := range s.spec.Filters {
		s.spec.Filters[i].Allow = entries
	}
}

// tiers is which of a scenario's tiers a column has.
type tiers uint8

const (
	allTiers tiers = iota
	gpuAlone
	gpuAndCPU
	untold // all tiers, of which the router gets one number: kv_tokens is the CPU tier's size
)

var tierNames = map[string]tiers{"gpu": gpuAlone, "l1": gpuAndCPU, "l2": allTiers, "flat": untold}

var sessionNames = map[string]served.Names{"hard": served.Binding, "unnamed": served.Unread}

// Find returns the strategies of a name: a built-in, native:NAME for its rule outside of the sandbox, the path of a
// module that ends in .wasm, the rule of others as package peers names it, peer:NAME where both have it, or peers for
// all of those by their own defaults. Options of a module follow it, and filters stand before it, as in
// "tenants.wasm > prefixaware": see [served.Read]. @gpu behind all that leaves out
// the tiers behind the GPUs, @l1 the shared one. With @flat the tiers are there, and the router knows of none: it takes
// each worker's KV cache to be as large as its CPU tier. With @4 there are four routers that share nothing, with
// @4/10ms four that send each other what they do, 10 ms late, and with @4/10ms/200
// each of these uses 200 of the workers. With @hard each session stays at its worker, as with
// [sessions] bind = "always"; with @unnamed the router reads no session's name. With @queue requests wait in the
// router, by the scenario's bounds or by those of [setup.Scenario.Wait]. With @colocated a scenario's workers have no
// roles; with @split its prefillers compute each prompt of which the answering worker lacks the threshold. With
// @hand-over conversations move away from a worker that leaves, before it ends. With @learnt the router does not know
// how long a transfer takes. With @answering it is not either, and prefillers answer too.
func Find(name string) ([]Strategy, error) {
	plain, suffix, has := strings.Cut(name, "@")
	column, err := readSuffix(suffix)
	if has && err != nil {
		return nil, fmt.Errorf("lab: strategy %q: %w", name, err)
	}
	found, err := find(name, plain)
	for i := range found {
		s := &found[i]
		s.tier, s.names, s.queue = column.tier, column.names, column.queue
		s.parts, s.handOver = column.parts, column.handOver
		s.routers, s.history, s.subset = column.routers, column.history, column.subset
	}
	return found, err
}

// readSuffix reads what stands behind a strategy's @, into an empty Strategy.
func readSuffix(text string) (s Strategy, err error) {
	if tier, known := tierNames[text]; known {
		s.tier = tier
		return s, nil
	}
	if names, known := sessionNames[text]; known {
		s.names = names
		return s, nil
	}
	if parts, known := partsNames[text]; known {
		s.parts = parts
		return s, nil
	}
	if text == "queue" || text == "hand-over" {
		s.queue, s.handOver = text == "queue", text == "hand-over"
		return s, nil
	}
	routers, delay, shares := strings.Cut(text, "/")
	s.routers, err = strconv.Atoi(routers)
	if err == nil && shares {
		var subset string
		var parts bool
		delay, subset, parts = strings.Cut(delay, "/")
		s.history, err = time.ParseDuration(delay)
		if err == nil && parts {
			s.subset, err = strconv.Atoi(subset)
			parts = s.subset < 2
		}
		shares = s.history <= 0 || parts
	}
	if err != nil || s.routers < 1 || shares {
		return s, fmt.Errorf("it ends in @%s; want @gpu, @l1, @l2, @flat, @hard, @unnamed, @queue, @hand-over, @colocated, "+
			"@split, @learnt, @answering, a number of routers as @4, one with the delay of what they tell each other, as "+
			"@4/10ms, or with how many workers each uses too, as @4/10ms/200", text)
	}
	return s, nil
}

// find is Find without what stands behind an @.
func find(name, plain string) ([]Strategy, error) {
	if plain == "peers" {
		var all []Strategy
		for _, p := range peers.All() {
			for _, v := range p.Defaults {
				all = append(all, Strategy{Name: "peer:" + v.Name, Peer: true, peer: v})
			}
		}
		return all, nil
	}
	if peer, is := strings.CutPrefix(plain, "peer:"); is {
		if v, ok := peers.Find(peer); ok {
			return []Strategy{{Name: name, Peer: true, peer: v}}, nil
		}
	}
	spec, err := served.Read(plain)
	if err == nil {
		return []Strategy{{Name: name, spec: spec}}, nil
	}
	if v, ok := peers.Find(plain); ok {
		return []Strategy{{Name: name, Peer: true, peer: v}}, nil
	}
	return nil, fmt.Errorf("lab: no strategy %q; give a built-in, a path that ends in .wasm, or a rule of others (%s): %w",
		name, strings.Join(PeerNames(), ", "), err)
}

// PeerNames lists the rules of others, as their own sources set them.
func PeerNames() (names []string) {
	for _, p := range peers.All() {
		for _, v := range p.Defaults {
			names = append(names, v.Name)
		}
	}
	return names
}

// cut leaves out the tiers that the column does not have.
func (t tiers) cut(e *setup.Engine) {
	if t == gpuAlone {
		e.CPUTokens = 0
	}
	if t == gpuAlone || t == gpuAndCPU {
		e.SharedTokens = 0
	}
}

// member is one of a run's routers.
type member struct {
	number int
	kept   *served.Kept // the store of all
}

// router makes a router of the strategy for one run.
func (s *Strategy) router(ctx context.Context, l *served.Loader, sc *setup.Scenario,
	c *world.Config, of member) (world.Router, error) {
	if s.Peer {
		memory := 1 + float64(sc.Engine.CPUTokens)/float64(max(1, c.Engine.KVTokens))
		return world.NewForeign(s.peer.New(peers.Setup{Seed: c.Seed, Tiers: memory}), c.Workers, c.Engine.KVTokens), nil
	}
	strategy, err := l.Load(ctx, &s.spec, c.Seed, of.kept)
	if err != nil {
		return nil, err
	}
	known := served.Config{
		Strategy: strategy, Block: c.Engine.BlockTokens, CPUTokens: sc.Engine.CPUTokens, Scrape: c.Scrape, Seed: c.Seed,
		Tiers: route.Tiers{SharedTokens: sc.Engine.SharedTokens, L1Rate: 1 / c.Engine.CPUSeconds,
			L2Rate: 1 / c.Engine.SharedSeconds},
		PrefillTokensPerSecond: sc.Engine.PoolPrefill, Number: of.number, Shares: c.History > 0 && c.Routers > 1,
		All: c.Workers, Subset: served.Subset(s.subset, c, of.number),
		Names: s.names, HandOver: s.handOver, Room: served.Bounds(sc.Room),
		Kept: of.kept,
	}
	for _, k := range sc.EachKind() {
		known.Workers = append(known.Workers, served.Worker{Labels: k.Labels, Cost: k.Cost,
			Prefills: k.Role == setup.RolePrefill && s.parts != never, SGLang: k.Engine == setup.EngineSGLang})
	}
	if d := &sc.Disaggregation; d.Rate > 0 && s.parts != never {
		known.Split = served.SplitOf(d.Threshold, d.Rate)
		known.Split.Always, known.Split.Shared = s.parts == whenever, s.parts == sharing
		if s.parts == byLearning || s.parts == sharing {
			known.Split.Rate = 0
		}
	}
	if q := &sc.Queue; q.MaxRequests > 0 {
		known.Queue = &served.Queue{Wait: q.Wait, Config: queue.Config{MaxRequests: q.MaxRequests, MaxBytes: q.MaxBytes,
			Starve: q.Starve}}
	}
	if s.tier == untold {
		known.KVTokens, known.CPUTokens, known.Tiers = sc.Engine.CPUTokens, 0, route.Tiers{}
	}
	r := served.New(ctx, known)
	if known.Split != nil {
		return served.Pair{Router: r}, nil
	}
	return r, nil
}
