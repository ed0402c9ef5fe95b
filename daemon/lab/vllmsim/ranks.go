package vllmsim

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/lmworker"
)

// ranks are the engines of a worker, one for each data-parallel rank, each with a cache of its own. Requests that
// name no rank are balanced as vLLM does: the rank with the least of 4 * waiting + running, the lowest one of equals.
// vLLM counts what it sends itself and learns what has ended every 100 ms.
type ranks struct {
	drivers []*driver

	mu    sync.Mutex // guards what follows
	score []int
	asked time.Time // when the scores were asked for
}

// lbInterval is how often vLLM's ranks report their queues.
const lbInterval = 100 * time.Millisecond

// newRanks starts the engines.
func newRanks(cfg *Config) (*ranks, error) {
	publishers, err := cfg.openPublishers()
	if err != nil {
		return nil, err
	}
	rs := &ranks{score: make([]int, cfg.DataParallel)}
	for rank := range cfg.DataParallel {
		var to sinks
		if publishers != nil {
			to.events = publishers[rank]
		}
		d, err := newRank(*cfg, rank, to)
		if err != nil {
			rs.close()
			for _, p := range publishers[min(rank, len(publishers)):] {
				p.Close()
			}
			return nil, err
		}
		rs.drivers = append(rs.drivers, d)
	}
	return rs, nil
}

// newRank starts one engine, and a worker of LMCache for it if the configuration has one.
func newRank(cfg Config, rank int, to sinks) (d *driver, err error) {
	if c := cfg.LMCache; c.Pull != "" {
		instance := cfg.ID
		if rank > 0 {
			instance += "-dp" + strconv.Itoa(rank)
		}
		to.lmcache, err = lmworker.New(lmworker.Config{
			Pull:      c.Pull,
			Reply:     c.Reply,
			Heartbeat: c.Heartbeat,
			Release:   c.Release,
			Instance:  instance,
		})
		if err != nil {
			return nil, err
		}
	}
	d, err = newDriver(cfg, to)
	if err != nil {
		to.lmcache.Close()
	}
	return d, err
}

// leastLoaded returns the driver of the least loaded rank, and counts the request that it is for.
func (rs *ranks) leastLoaded() *driver {
	if len(rs.drivers) == 1 {
		return rs.drivers[0]
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if now := time.Now(); now.Sub(rs.asked) >= lbInterval {
		rs.asked = now
		for i, d := range rs.drivers {
			st := d.lastStats()
			rs.score[i] = 4*(st.Waiting+st.Loading) + st.Running
		}
	}
	best := 0
	for i, s := range rs.score {
		if s < rs.score[best] {
			best = i
		}
	}
	rs.score[best] += 4
	return rs.drivers[best]
}

// each calls f with every driver.
func (rs *ranks) each(f func(*driver)) {
	for _, d := range rs.drivers {
		f(d)
	}
}

// freeze begins or ends a stall of all ranks.
func (rs *ranks) freeze(on bool) { rs.each(func(d *driver) { d.freeze(on) }) }

// abort ends all that runs or waits.
func (rs *ranks) abort() { rs.each((*driver).abort) }

// close ends all ranks.
func (rs *ranks) close() { rs.each((*driver).close) }

// resetCache empties the caches, and reports whether all ranks could.
func (rs *ranks) resetCache(preempt, external bool) bool {
	ok := true
	rs.each(func(d *driver) { ok = d.resetCache(preempt, external) && ok })
	return ok
}

// leave has the workers of LMCache deregister from their controller when the ranks are closed.
func (rs *ranks) leave() { rs.each(func(d *driver) { d.lmcache.Leave() }) }

// setEventFault begins or ends a fault of the events of all ranks.
func (rs *ranks) setEventFault(f events.Fault, messages int) error {
	var failed error
	rs.each(func(d *driver) { failed = errors.Join(failed, d.events.SetFault(f, messages)) })
	return failed
}

// stats returns what each engine has done by now, and the uptime.
func (rs *ranks) stats() (list []engine.Stats, uptime time.Duration) {
	rs.each(func(d *driver) {
		var st engine.Stats
		st, uptime = d.stats()
		list = append(list, st)
	})
	return list, uptime
}
