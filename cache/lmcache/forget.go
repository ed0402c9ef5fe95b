package lmcache

import "time"

// LMCache makes up an instance_id at each start unless it is given one. So instances that are gone must not keep the
// places of those that come.

// makeRoom forgets the instance that was silent for longest among those that are lost, or silent for forgetAfter. It
// reports whether there was one. The caller holds mu.
func (f *fleet) makeRoom(now time.Time) bool {
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

// lastHeard returns the last sign of life, and whether the instance is known to have gone.
func (i *instance) lastHeard() (at time.Time, lost bool) {
	at = i.heard
	lost = !i.server || !i.live.Load()
	for _, r := range i.ranks {
		if r.heard.After(at) {
			at = r.heard
		}
		lost = lost && (r.lost || i.server)
	}
	return at, lost
}

// forgetRanks forgets the ranks of a worker that have been lost for long.
func (f *fleet) forgetRanks(i *instance, now time.Time) {
	for _, r := range i.ranks {
		if r.lost && now.Sub(r.heard) > forgetAfter {
			f.drop(i, r)
		}
	}
}

// discard takes an instance out again that was made for a message which was then refused.
func (f *fleet) discard(i *instance) {
	if len(i.ranks) == 0 && !i.server {
		f.remove(i)
	}
}
