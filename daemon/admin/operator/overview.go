package operator

import (
	"time"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/admin/decisions"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/kv/kvcache"
	"github.com/warmpath/warmpath/daemon/peers"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/certificate"
	"github.com/warmpath/warmpath/host"
)

// Overview is the answer of /api/v1/overview: all that the page shows except decisions, the last hour and the
// configuration.
type Overview struct {
	Version  string          `json:"version"`
	Now      time.Time       `json:"now"`
	Began    time.Time       `json:"began"`
	Ready    bool            `json:"ready"`
	Draining bool            `json:"draining"`
	InFlight int64           `json:"in_flight"`
	Clients  int             `json:"connections"`
	Kept     decisions.Stats `json:"decisions"`
	Reload   metrics.Reload  `json:"reload"`
	Change   *metrics.Reload `json:"last_change,omitempty"` // the last reload that changed something; absent = none has
	Warnings []Warning       `json:"warnings"`              // what an operator is to look at, the worst first
	Pools    []PoolOverview  `json:"pools"`
	Tiers    []Tier          `json:"tiers"`

	Certificates []certificate.Stats `json:"certificates"`
}

// PoolOverview is a pool with its demand and its sessions.
type PoolOverview struct {
	PoolState
	Models   []string           `json:"models"`
	Demand   float64            `json:"demand_seconds"`  // as pool_demand_seconds
	Wanted   int                `json:"workers_wanted"`  // as pool_workers_wanted
	Roles    []metrics.RoleLoad `json:"roles,omitempty"` // absent = no worker has a role
	Sessions map[string]int     `json:"sessions"`        // live, by kind
	Blocks   int                `json:"index_blocks"`
	Strategy host.Stats         `json:"module"`

	Aside map[string]string `json:"canaries_set_aside,omitempty"` // last error by name; the fallback answers

	Split *SplitState `json:"disaggregation,omitempty"` // absent = no worker has a role
}

// SplitState describes when prompts of a pool are computed by workers of their own.
type SplitState struct {
	Connector string  `json:"connector"`
	Threshold int     `json:"threshold_tokens"`
	Always    bool    `json:"threshold_alone"`            // rule = "threshold": it decides whatever the rate is
	Rate      float64 `json:"transfer_tokens_per_second"` // of KV from prefillers; 0 = not known: the threshold decides
	Learnt    bool    `json:"learnt"`                     // the rate is learnt; else it is kv_transfer_rate
}

// splitOf describes p's roles, nil if it has none.
func splitOf(p *readiness.Pool, now time.Time) *SplitState {
	r := p.Pairing
	if r == nil {
		return nil
	}
	s := &SplitState{Connector: string(r.Connector), Threshold: r.Threshold, Always: r.Always, Rate: r.Rate}
	if s.Rate <= 0 {
		s.Rate = p.TransferRate(now)
		s.Learnt = s.Rate > 0
	}
	return s
}

// Tier is a store of this process.
type Tier struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
	Bytes   int64  `json:"bytes"`
	Room    int64  `json:"room_bytes,omitempty"` // 0 = not known
	Hits    uint64 `json:"hits"`
	Misses  uint64 `json:"misses"`
	State   string `json:"state"`
}

// overview collects what the page shows.
func (s *Server) overview() Overview {
	now := time.Now()
	pools := s.c.Process.Pools()
	o := Overview{Version: s.c.Metrics.Version(), Now: now, Began: s.began, Draining: s.c.Process.Draining(),
		Tiers:        tiers(s.c.Store.Stats(), s.c.Peers.Stats(), s.c.KVCache),
		Certificates: append([]certificate.Stats{}, s.c.Certificates.Stats()...)}
	o.Reload, o.Change = s.c.Metrics.LastReload()
	clients := s.c.Process.Clients()
	o.InFlight, o.Clients = clients.InFlight, clients.Connections.Open
	o.Kept = s.c.Ring.Stats()
	states := Describe(pools)
	for i, p := range pools {
		o.Ready = o.Ready || !o.Draining && mayServe(states[i].WhyNot, states[i].WhyNot == "" || states[i].Panics)
		o.Pools = append(o.Pools, overviewOf(p, states[i], s.c.Metrics.Recent().Load(p, now), now))
	}
	return o
}

func overviewOf(p *readiness.Pool, state PoolState, asked metrics.Load, now time.Time) PoolOverview {
	v := PoolOverview{PoolState: state, Models: p.Models, Demand: asked.Demand, Wanted: asked.Wanted, Roles: asked.Roles,
		Sessions: map[string]int{}, Blocks: p.Index.Stats().Blocks, Aside: map[string]string{}, Split: splitOf(p, now)}
	for _, n := range p.Sessions.Live(now) {
		for _, k := range [...]session.Kind{session.Opened, session.Key, session.Response} {
			v.Sessions[k.String()] += n[k]
		}
	}
	own := p.Strategy.Strategy()
	for _, s := range p.Strategies() {
		n := s.Stats()
		switch {
		case s == own:
			v.Strategy = n
		case n.Quarantined:
			v.Aside[s.Name()] = n.LastError
		}
	}
	return v
}

// tiers returns the stores of this process: its own, Redis behind that, the other routers', and the workers' KV cache.
func tiers(own tier.Stats, shared peers.Stats, kv *kvcache.Cache) []Tier {
	all := []Tier{{Name: "router's own store", Entries: own.Entries, Bytes: int64(own.Bytes), Hits: own.L1Hits,
		Misses: own.Misses, State: "in memory"}}
	if own.L2.Configured {
		state := "answers"
		switch {
		case own.L2.Open:
			state = "does not answer: memory alone serves: " + own.L2.Why
		case own.L2.Refuses != "":
			state = "refuses a part of what it is asked: memory alone has that: " + own.L2.Refuses
		}
		all = append(all, Tier{Name: "Redis", Hits: own.L2Hits, State: state})
	}
	if shared.On {
		state := "answers"
		if !shared.Connected {
			state = "does not answer: this router learns nothing of the others: " + shared.Err
		}
		all = append(all, Tier{Name: "routers' history", State: state})
	}
	if n, open := kv.Stats(); open {
		all = append(all, Tier{Name: "workers' KV cache", Entries: int(n.Store.Entries), Bytes: int64(n.Store.ValueBytes),
			Room: int64(n.Store.ArenaBytes), Hits: n.Store.Hits + n.Store.FromDisk + n.Store.FromFar, Misses: n.Store.Misses,
			State: "open"})
	}
	return all
}

// PoolHour is a pool's last hour.
type PoolHour struct {
	Pool  string         `json:"pool"`
	Spans []metrics.Span `json:"spans"`
}

// recent returns the last hour of every pool.
func (s *Server) recent() []PoolHour {
	all := []PoolHour{}
	now := time.Now()
	for _, p := range s.c.Process.Pools() {
		all = append(all, PoolHour{Pool: p.Name, Spans: s.c.Metrics.Recent().Hour(now, p.Name)})
	}
	return all
}
