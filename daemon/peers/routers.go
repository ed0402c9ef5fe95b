package peers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// maxRecords bounds the records that one router may send in a second: ten times those of a busy one.
const maxRecords = 50_000

// mostSilence is the longest silence for which a router may catch up at once. After a longer silence a busy router has
// dropped its older frames.
const mostSilence = time.Minute

// HearerStats counts the messages that were received, and those that were refused.
type HearerStats struct {
	Frames, Bytes, Records uint64
	Repeated               uint64        // frames that came again
	Late                   uint64        // frames that filled a gap
	Gaps                   uint64        // times that frames of a router were missing
	Foreign                uint64        // entries that are no frame, or a broken one
	Versions               uint64        // frames of another version of frames or texts
	Secrets                uint64        // frames made with another secret
	Flooded                uint64        // frames of a router that sends too much
	Unlinked               uint64        // chains whose beginning is unknown
	Expired                uint64        // requests in flight of routers whose lease ended
	Replayed               uint64        // frames that were sent before this router began
	Lag                    time.Duration // of the newest frame
	Open                   int           // requests of others in flight
}

// sender is another router, as its messages describe it.
type sender struct {
	id      uint64
	beat    Beat
	beats   int
	number  uint64
	missing [2]uint64 // frames from the first number to before the second are missing, and may come late
	heard   time.Time // when the newest frame was sent
	first   time.Time
	lag     time.Duration
	frames  uint64
	bytes   uint64
	version [2]byte
	secret  bool // its frames were made with another secret
	gone    bool // its lease is over, or it sent a bye
	open    map[uint64]*route.Heard
	others  map[uint64]bool // keys that name other workers here: records about them are ignored
	told    time.Time       // when the newest record was sent, or the first one was written
	left    int             // records that it may send until refill
	refill  time.Time       // when left is filled again
}

// allows counts one record of the router, and reports whether the router is within its limit. The limit is maxRecords
// for each second by Redis's clock, and as many for each second of silence before, as a router sends everything at once
// after an outage of Redis.
func (s *sender) allows(sent time.Time) bool {
	if !sent.Before(s.refill) {
		span := min(max(time.Second, sent.Sub(s.told)), mostSilence)
		s.left, s.refill = int(maxRecords*span.Seconds()), sent.Add(span)
	}
	s.told = sent
	s.left--
	return s.left >= 0
}

// misses reports whether a frame is missing, and records that it has come. Late frames come in order.
func (s *sender) misses(number uint64) bool {
	if number < s.missing[0] || number >= s.missing[1] {
		return false
	}
	s.missing[0] = number + 1
	return true
}

// compare finds the keys that name another worker at the router than here, by the addresses in own, and ends the
// router's requests in flight there.
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

// title returns the router's name for a log line.
func (s *sender) title() string { return cmp.Or(s.beat.Name, fmt.Sprintf("%016x", s.id)) }

// Router describes another router by its messages.
type Router struct {
	ID, Name      string
	Alive         bool
	Heard         time.Time // when its newest message was sent
	Lag           time.Duration
	Frames, Bytes uint64
	InFlight      int
	Workers       []Named
	Version, Text int // versions of its messages, and of its hashes
	OtherSecret   bool
	digest        uint64
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Expire ends the requests in flight of routers that were silent for the Lease. It returns their names, and when the
// next lease ends. heard is up to when the stream was read: later messages are not known yet. If not steady, Redis is
// lost or was so shortly before: routers that could not be heard are not gone.
func (h *Hearer) Expire(heard, now time.Time, steady bool) (lost []string, next time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	blind := now.Sub(heard) > Lease
	for id, s := range h.senders {
		over := now.Sub(s.heard) >= Lease && heard.Sub(s.heard) >= Lease-unread
		if !s.gone && (over || blind) {
			h.counts.Expired += uint64(len(s.open))
			h.endAll(s)
			h.missed = h.missed || blind || !steady
			if !blind && steady {
				s.gone = true
				lost = append(lost, s.title())
			}
		}
		if end := s.heard.Add(Lease); !s.gone && (steady || end.After(now)) && (next.IsZero() || end.Before(next)) {
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

// Routers describes the other routers, sorted by name.
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
