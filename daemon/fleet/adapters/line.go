package adapters

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

const (
	// SlotWait is how long a request waits for slots, at all workers together.
	SlotWait = time.Minute
	// slotEvery is the time between two looks for a slot while loads wait: no event reports that an adapter has become
	// idle.
	slotEvery = 50 * time.Millisecond
	// maxWaiting bounds the loads that wait at a worker. A key has at most as many as it leaves free to others.
	maxWaiting = 512
)

// line is the loads that wait for a slot at one worker, in order of arrival. It is there while one waits.
type line struct {
	waiting []*load
	turns   map[string]int // by key: how many slots were given when it got its last one
	given   int            // slots
	looks   bool           // a timer looks for slots
}

// enter puts a load at the end of its worker's line. It returns false if the line is full for its key.
func (l *Loader) enter(d *load, caller string) bool {
	n := l.lines[d.worker]
	if n == nil {
		n = &line{turns: map[string]int{}}
		l.lines[d.worker] = n
	}
	own := 0
	for _, o := range n.waiting {
		if o.clients[caller] > 0 {
			own++
		}
	}
	if own >= maxWaiting-len(n.waiting) {
		return false
	}
	n.waiting = append(n.waiting, d)
	return true
}

// advance gives slots at a worker to the loads that wait, and looks again later if some still do. A line without loads
// ends.
func (l *Loader) advance(at string) {
	n := l.lines[at]
	for n != nil && len(n.waiting) > 0 {
		i, caller := n.next()
		d := n.waiting[i]
		gone, slot := l.workers.TakeAdapterSlot(d.at, d.name, d.by.Max)
		if slot == worker.SlotLater {
			if !n.looks {
				n.looks = true
				time.AfterFunc(slotEvery, func() { l.look(at, n) })
			}
			return
		}
		n.waiting = slices.Delete(n.waiting, i, i+1)
		if slot == worker.SlotNever {
			l.end(d, errFailed)
			continue
		}
		n.given++
		n.turns[caller] = n.given
		d.slot, d.gone = true, gone
		go d.run()
	}
	delete(l.lines, at)
}

// look has a line advance, if it has not ended.
func (l *Loader) look(at string, n *line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.looks = false
	if l.lines[at] == n {
		l.advance(at)
	}
}

// next returns which load gets the next slot, and for which key: the key's whose last slot is the longest ago, and of
// its loads the first.
func (n *line) next() (first int, caller string) {
	least := n.given + 1
	for i, d := range n.waiting {
		for c := range d.clients {
			if at := n.turns[c]; at < least {
				first, caller, least = i, c, at
			}
		}
	}
	return first, caller
}

// leave takes a client off a load. A load without clients gives its place in the line up. If it has its slot, a client
// that has waited too long stays: leave returns false.
func (l *Loader) leave(d *load, caller string, late bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d.slot && late {
		return false
	}
	d.clients[caller]--
	if d.clients[caller] == 0 {
		delete(d.clients, caller)
	}
	n := l.lines[d.worker]
	if d.slot || len(d.clients) > 0 || n == nil {
		return true
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(o *load) bool { return o == d })
	delete(l.loads, d.key)
	l.advance(d.worker)
	return true
}
