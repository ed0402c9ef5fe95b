package peers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// maxRecords is what one router may tell in a second: ten times what a busy one does.
const maxRecords = 50_000

// mostSilence is the longest silence after which a router may tell more at once: by then a busy one has dropped what it
// had to tell.
const mostSilence = time.Minute

// HearerStats counts what was heard, and what was not believed.
type HearerStats struct {
	Frames, Bytes, Records uint64
	Repeated               uint64        // frames that came again
	Late                   uint64        // frames that had been missing
	Gaps                   uint64        // times that frames of a router were missing
	Foreign                uint64        // entries that are no frame, or a broken one
	Versions               uint64        // frames of another version of frames or texts
	Secrets                uint64        // frames made with another secret
	Flooded                uint64        // frames of a router that tells too much
	Unlinked               uint64        // chains whose beginning is not known
	Expired                uint64        // requests in flight of routers that were not heard any more
	Replayed               uint64        // frames that were there before this router
	Lag                    time.Duration // of the newest frame
	Open                   int           // requests of others in flight
}

// sender is another router, as far as it was heard.
type sender struct {
	id      uint64
	beat    Beat
	beats   int
	number  uint64
	missing [2]uint64 // numbers from the first to before the second were not heard, and may come late
	heard   time.Time // when the newest frame was sent
	first   time.Time
	lag     time.Duration
	frames  uint64
	bytes   uint64
	version [2]byte
	secret  bool // its frames were made with another secret
	gone    bool // its lease is over, or it said bye
	open    map[uint64]*route.Heard
	others  map[uint64]bool // keys that name other workers here: what it tells of those is not believed
	told    time.Time       // when the newest record was sent, or the first one was written
	left    int             // records that it may tell until refill
	refill  time.Time       // when it may tell as many again
}

// allows takes one from what the router may tell: maxRecords for each second by Redis's clock, and for each second of
// the silence before that, as after an outage of Redis it tells all at once.
func (s *sender) allows(sent time.Time) bool {
	if !sent.Before(s.refill) {
		span := min(max(time.Second, sent.Sub(s.told)), mostSilence)
		s.left, s.refill = int(maxRecords*span.Seconds()), sent.Add(span)
	}
	s.told = sent
	s.left--
	return s.left >= 0
}

// misses reports whether a frame is missing, and notes that it has come. Those that come late come in order.
func (s *sender) misses(number uint64) bool {
	if number < s.missing[0] || number >= s.missing[1] {
		return false
	}
	s.missing[0] = number + 1
	return true
}

// compare notes which keys name other workers at the router than here, by this router's addresses, and ends what is in
// flight there.
func (s *sender) compare(own map[uint64]uint64) {
	s.others = nil
	for _, n := range s.beat.Workers {
		if at, ok := own[n.Key]; !ok || at == n.Address {
			continue
		}
		if s.others == nil {
			s.others = map[uint64]bool{}
		}
		s.others[n.Key] = true
	}
	if s.others == nil {
		return
	}
	for id, o := range s.open {
		if told, _ := o.Sent(); s.others[told.Worker] {
			o.End()
			delete(s.open, id)
		}
	}
}

// know sets this router's own workers.
func (h *Hearer) know(own []Named) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.own = make(map[uint64]uint64, len(own))
	for _, n := range own {
		h.own[n.Key] = n.Address
	}
	for _, s := range h.senders {
		s.compare(h.own)
	}
}

// title names a router in a log line.
func (s *sender) title() string { return cmp.Or(s.beat.Name, fmt.Sprintf("%016x", s.id)) }

// Router is another router, as it was heard.
type Router struct {
	ID, Name      string
	Alive         bool
	Heard         time.Time // when its newest message was sent
	Lag           time.Duration
	Frames, Bytes uint64
	InFlight      int
	Workers       []Named
	Version, Text int // of its messages, and of its hashes
	OtherSecret   bool
	digest        uint64
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Expire ends the requests in flight of routers that were not heard for the Lease, and returns their names and when the
// next lease ends. heard is until when the stream was read: what a router has told since cannot be known.
func (h *Hearer) Expire(heard, now time.Time) (lost []string, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	blind := now.Sub(heard) > Lease
	for id, s := range h.senders {
		over := now.Sub(s.heard) >= Lease && heard.Sub(s.heard) >= Lease-unread
		if !s.gone && (over || blind) {
			h.counts.Expired += uint64(len(s.open))
			h.endAll(s)
			h.missed = h.missed || blind
			if !blind {
				s.gone = true
				lost = append(lost, s.title())
			}
		}
		if end := s.heard.Add(Lease); !s.gone && (next.IsZero() || end.Before(next)) {
			next = end
		}
		if s.gone && now.Sub(s.heard) > forgetAfter {
			delete(h.senders, id)
		}
	}
	slices.Sort(lost)
	return lost, next
}

// Stats returns the counts so far.
func (h *Hearer) Stats() HearerStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.counts
	for _, o := range h.senders {
		s.Open += len(o.open)
	}
	return s
}

// Routers describes the other routers, by name.
func (h *Hearer) Routers(now time.Time) (all []Router) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.senders {
		all = append(all, Router{ID: fmt.Sprintf("%016x", s.id), Name: s.beat.Name,
			Alive: !s.gone && now.Sub(s.heard) <= Lease, Heard: s.heard, Lag: s.lag, Frames: s.frames, Bytes: s.bytes,
			InFlight: len(s.open), Workers: s.beat.Workers, digest: s.beat.digest, Version: int(s.version[0]),
			Text: int(s.version[1]), OtherSecret: s.secret})
	}
	slices.SortFunc(all, func(a, b Router) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}
