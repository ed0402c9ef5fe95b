package lmcache

import (
	"cmp"
	"slices"
	"time"
)

// Stats is what an operator sees.
type Stats struct {
	On        bool // it is configured
	Counts    Counts
	Keys      int64 // chunks held, all together
	Instances []InstanceStats
}

// InstanceStats describes one instance.
type InstanceStats struct {
	ID      string           `json:"id"`
	Kind    string           `json:"kind"`  // worker, server
	State   string           `json:"state"` // live, understood or not; or why not
	Address string           `json:"address"`
	Hash    string           `json:"hash,omitempty"` // the variant; "" = not known yet
	Ranks   int              `json:"ranks"`
	Keys    map[string]int64 `json:"keys"` // by location
	Admits  uint64           `json:"admits"`
	Since   time.Time        `json:"since"`
	Heard   time.Time        `json:"heard"`
}

// Stats describes all instances, by id.
func (k *Controller) Stats() Stats {
	if k == nil {
		return Stats{}
	}
	return statsOf(k.fleet)
}

func statsOf(f *fleet) Stats {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := Stats{On: true, Counts: f.count}
	for _, i := range f.instances {
		one := i.stats()
		for _, n := range one.Keys {
			s.Keys += n
		}
		s.Instances = append(s.Instances, one)
	}
	s.Keys += f.common.keys()
	slices.SortFunc(s.Instances, func(a, b InstanceStats) int { return cmp.Compare(a.ID, b.ID) })
	return s
}

func (i *instance) stats() InstanceStats {
	s := InstanceStats{ID: i.id, Kind: "worker", Address: i.ip, Ranks: len(i.ranks), Admits: i.admits.Load(),
		Since: i.since, Heard: i.heard, Keys: map[string]int64{}}
	if i.server {
		s.Kind = "server"
	}
	reported := i.server
	for _, r := range i.ranks {
		for location, stream := range r.streams {
			s.Keys[location] += stream.seat.keys.Load()
		}
		reported = reported || r.reported
		if r.heard.After(s.Heard) {
			s.Heard = r.heard
		}
		if s.Address == "" || r.number == 0 && !i.server {
			s.Address = r.address
		}
	}
	v := i.variant.Load()
	switch {
	case i.why != none:
		s.State = string(i.why)
	case !i.live.Load():
		s.State = string(silent)
	case !reported:
		s.State = "registered, silent"
	case v == nil && s.Admits > 0:
		s.State = "hash unknown"
	default:
		s.State = "live"
	}
	if v != nil {
		s.Hash = v.String()
	}
	return s
}
