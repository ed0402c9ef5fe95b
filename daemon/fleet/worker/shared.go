package worker

import (
	"cmp"
	"slices"
	"time"
)

// This file divides the questions to the workers among routers that share a history. Each worker has one router that
// asks it, by rendezvous hashing, and publishes what it saw. The others follow: they ask a worker themselves only if
// nothing was published of it for two intervals, or if there is a reason to. What a router publishes never takes a
// worker down elsewhere: after a bad check each router checks the worker itself.

// Seen is what a router has seen of a worker since it last published something of it.
type Seen struct {
	Key   uint64 // of the worker, of several ranks the first one's
	Check int    // 1: a health check was good; 2: one was not; 0: none was made
	Page  *Page  // of metrics; nil = none was read
}

const (
	checkedGood = 1
	checkedBad  = 2
)

// Sharer is another router that shares the questions to the workers.
type Sharer struct {
	ID  uint64
	Has map[uint64]bool // keys of its workers; nil = it has the same
}

// sharing is what a router shares with others. The zero value shares nothing.
type sharing struct {
	self   uint64 // this router
	others []Sharer
	seen   map[uint64]Seen
	hurry  bool // seen holds a bad check, which goes to urgent at once
	urgent func([]Seen)
}

// set sets the routers, and returns what was seen since the last call.
func (s *sharing) set(self uint64, others []Sharer, urgent func([]Seen)) []Seen {
	s.self, s.others, s.urgent = self, others, urgent
	return s.take()
}

// publish keeps what was seen of a worker until the next take.
func (s *sharing) publish(key uint64, check int, page *Page) {
	if len(s.others) == 0 {
		return
	}
	if s.seen == nil {
		s.seen = map[uint64]Seen{}
	}
	was := s.seen[key]
	s.seen[key] = Seen{Key: key, Check: max(check, was.Check), Page: cmp.Or(page, was.Page)}
	s.hurry = s.hurry || check == checkedBad
}

func (s *sharing) take() (all []Seen) {
	for _, one := range s.seen {
		all = append(all, one)
	}
	clear(s.seen)
	s.hurry = false
	return all
}

// inHurry returns what must not wait for the next call of set, and the function that publishes it.
func (s *sharing) inHurry() ([]Seen, func([]Seen)) {
	if !s.hurry || s.urgent == nil {
		return nil, nil
	}
	return s.take(), s.urgent
}

// asks reports whether this router is the one that asks a worker: of those that have the worker it has the greatest
// hash of router and worker.
func (s *sharing) asks(worker uint64) bool {
	own := Rendezvous(s.self, worker)
	return !slices.ContainsFunc(s.others, func(o Sharer) bool {
		return Rendezvous(o.ID, worker) > own && (o.Has == nil || o.Has[worker])
	})
}

// Rendezvous returns the hash of a router and a worker, by their keys: of several routers the one with the greatest
// hash has the worker.
func Rendezvous(router, worker uint64) uint64 {
	x := (router ^ worker) * 0x9E3779B97F4A7C15
	x = (x ^ x>>32) * 0xD6E8FEB86659FD93
	return x ^ x>>32
}

// publishedAt is when another router last published a good check of a worker, and a page.
type publishedAt struct{ check, page time.Duration }

// publishedWithin is how long a good check waits for the next call of set and its way, at most.
const publishedWithin = 1500 * time.Millisecond

// isRecent reports whether what was heard at a time is of the last two intervals.
func isRecent(at, every, now time.Duration) bool { return at > 0 && now-at < 2*every+publishedWithin }
