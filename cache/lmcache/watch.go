package lmcache

import (
	"strconv"
	"time"
)

// tick notices who has gone silent and ends doubts.
func tick(f *fleet, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	connected := map[string]bool{"": true}
	for _, host := range f.conns {
		connected[host] = true
	}
	for _, i := range f.instances {
		if i.why != none && now.After(i.until) {
			i.why = none
		}
		if i.server {
			watchServer(f, i, now)
			continue
		}
		for _, r := range i.ranks {
			watch(f, i, r, now, connected[r.from])
		}
		i.judge()
		forgetRanks(f, i, now)
	}
	f.dir.sweep()
}

// watch notices a rank that has gone. Chunks of a worker whose connection is gone are gone as well: its memory is.
func watch(f *fleet, i *instance, r *rank, now time.Time, connected bool) {
	if r.sync != nil && now.Sub(r.sync.began) > syncPatience {
		r.sync = nil
	}
	if !r.reported && now.Sub(r.since) > muteAfter && f.asks.Load()-r.asks >= muteAsks {
		f.warn("mute"+i.id, "an LMCache worker has registered and reports nothing",
			"instance", i.id, "rank", r.number, "address", r.address,
			"remedy", "restart it: one whose registration is not answered within 30 s of its start reports nothing")
	}
	gone := !connected && now.Sub(r.heard) > minOverdue
	if r.lost || !gone && !r.overdue(now) {
		return
	}
	r.lost = true
	f.count.Lost++
	if gone {
		for _, s := range r.streams {
			f.dir.clear(s.seat)
			s.next = noSeq
		}
		r.want = "connection_lost"
	}
	f.warn("lost"+i.id+strconv.Itoa(r.number), "an LMCache worker has gone silent: what it holds is not believed",
		"instance", i.id, "rank", r.number, "address", r.address, "silent_for", now.Sub(r.heard).Round(time.Second),
		"connected", connected, "remedy", remedies[silent])
}

// A worker that reports nothing for muteAfter although muteAsks prompts came in that time is mute rather than idle.
const (
	muteAfter = 2 * time.Minute
	muteAsks  = 50
)

// watchServer notices a server without heartbeats.
func watchServer(f *fleet, i *instance, now time.Time) {
	switch silence := now.Sub(i.heard); {
	case silence > forgetAfter:
		f.dismissLocked(i)
	case silence > minOverdue && i.live.Load():
		i.live.Store(false)
		f.count.Lost++
		f.warn("lost"+i.id, "an LMCache server has gone silent: what it holds is not believed",
			"instance", i.id, "address", i.ip, "silent_for", silence.Round(time.Second), "remedy", remedies[silent])
	}
}

// forgetAfter is when a silent server's memory is taken for gone.
const forgetAfter = 10 * time.Minute

// LMCache makes up an instance_id at each start unless it is given one. So instances that are gone must not keep the
// places of those that come.

// makeRoom forgets the instance that was silent for longest among those that are lost, or silent for forgetAfter. It
// reports whether there was one. The caller holds mu.
func makeRoom(f *fleet, now time.Time) bool {
	var oldest *instance
	var heard time.Time
	for _, i := range f.instances {
		at, lost := i.lastHeard()
		if (lost || now.Sub(at) > forgetAfter) && (oldest == nil || at.Before(heard)) {
			oldest, heard = i, at
		}
	}
	if oldest == nil {
		return false
	}
	f.dismissLocked(oldest)
	return true
}

// forgetRanks forgets the ranks of a worker that have been lost for long.
func forgetRanks(f *fleet, i *instance, now time.Time) {
	for _, r := range i.ranks {
		if r.lost && now.Sub(r.heard) > forgetAfter {
			f.drop(i, r)
		}
	}
}
