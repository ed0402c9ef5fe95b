package peers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/request/route"
)

// maxRecords bounds the records that one router may send in a second: ten times those of a busy one.
const maxRecords = 50_000

// mostSilence is the longest silence for which a router may catch up at once. After a longer silence a busy router has
// dropped its older frames.
const mostSilence = time.Minute

// ReceiverStats counts the messages that were received, and those that were refused.
type ReceiverStats struct {
	Traffic
	Repeated uint64        // frames that came again
	Late     uint64        // frames that filled a gap
	Gaps     uint64        // times that frames of a router were missing
	Foreign  uint64        // entries that are no frame, or a broken one
	Versions uint64        // frames of another version of frames or texts
	Secrets  uint64        // frames made with another secret
	Flooded  uint64        // frames of a router that sends too much
	Unlinked uint64        // chains whose beginning is unknown
	Expired  uint64        // requests in flight of routers whose lease ended
	Replayed uint64        // frames that were sent before this router began
	Lag      time.Duration // of the newest frame
	Open     int           // requests of others in flight
}

// peer is another router, as its messages describe it.
type peer struct {
	id         uint64
	beat       Beat
	beats      int
	number     uint64
	missing    [2]uint64 // frames from the first number to before the second are missing, and may come late
	lastSent   time.Time // when the newest frame was sent
	first      time.Time
	lag        time.Duration
	frames     uint64
	bytes      uint64
	version    [2]byte
	secret     bool // its frames were made with another secret
	foreign    bool // its frames are refused, for their version or their secret
	gone       bool // its lease is over, or it sent a bye
	open       map[uint64]*route.Heard
	others     map[uint64]bool // keys that name other workers here: records about them are ignored
	recordedAt time.Time       // when the newest record was sent, or the first one was written
	left       int             // records that it may send until refill
	refill     time.Time       // when left is filled again
}

// isAlive reports whether the router has sent something within its lease, and has not said that it ends.
func (p *peer) isAlive(now time.Time) bool { return !p.gone && now.Sub(p.lastSent) <= Lease }

// allowsRecord counts one record of the router, and reports whether the router is within its limit. The limit is
// maxRecords for each second by Redis's clock, and as many for each second of silence before, as a router sends
// everything at once after an outage of Redis.
func (p *peer) allowsRecord(sent time.Time) bool {
	if !sent.Before(p.refill) {
		span := min(max(time.Second, sent.Sub(p.recordedAt)), mostSilence)
		p.left, p.refill = int(maxRecords*span.Seconds()), sent.Add(span)
	}
	p.recordedAt = sent
	p.left--
	return p.left >= 0
}

// fillsGap reports whether a frame is missing, and records that it has come. Late frames come in order.
func (p *peer) fillsGap(number uint64) bool {
	if number < p.missing[0] || number >= p.missing[1] {
		return false
	}
	p.missing[0] = number + 1
	return true
}

// inFlight counts the router's requests in flight by their workers' ids.
func (p *peer) inFlight() map[string]int {
	ids, at := map[uint64]string{}, map[string]int{}
	for _, w := range p.beat.Workers {
		ids[w.Key] = w.ID
	}
	for _, o := range p.open {
		sent, _ := o.Sent()
		if id, known := ids[sent.Worker]; known {
			at[id]++
		}
	}
	return at
}

// findOtherWorkers finds the keys that name another worker at the router than here, by the addresses in own, and ends
// the router's requests in flight there.
func (p *peer) findOtherWorkers(own map[uint64]uint64) {
	p.others = nil
	for _, n := range p.beat.Workers {
		if at, ok := own[n.Key]; !ok || at == n.Address {
			continue
		}
		if p.others == nil {
			p.others = map[uint64]bool{}
		}
		p.others[n.Key] = true
	}
	if p.others == nil {
		return
	}
	for id, o := range p.open {
		if sent, _ := o.Sent(); p.others[sent.Worker] {
			o.End()
			delete(p.open, id)
		}
	}
}

// setOwnWorkers sets this router's own workers.
func (r *Receiver) setOwnWorkers(own []Named) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.own = make(map[uint64]uint64, len(own))
	for _, n := range own {
		r.own[n.Key] = n.Address
	}
	for _, p := range r.peers {
		p.findOtherWorkers(r.own)
	}
}

// title returns the router's name for a log line.
func (p *peer) title() string { return cmp.Or(p.beat.Name, fmt.Sprintf("%016x", p.id)) }

// Router describes another router by its messages.
type Router struct {
	ID          string         `json:"id"`
	Name        string         `json:"name"`
	Alive       bool           `json:"alive"`
	LastSent    time.Time      `json:"heard"` // when its newest message was sent
	Lag         float64        `json:"lag_seconds"`
	Frames      uint64         `json:"messages"`
	Bytes       uint64         `json:"bytes"`
	InFlight    int            `json:"in_flight"`
	Workers     int            `json:"workers"`
	Version     int            `json:"version"`      // of its messages
	Text        int            `json:"text_version"` // of its hashes
	OtherSecret bool           `json:"other_secret"`
	At          map[string]int `json:"in_flight_by_worker"` // workers without any are left out

	workers []Named
	digest  uint64
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// Expire ends the requests in flight of routers that were silent for the Lease. It returns their names, and when the
// next lease ends. readUntil is up to when the stream was read: later messages are not known yet. If not steady, Redis
// is lost or was so shortly before: routers that could not be read are not gone.
func (r *Receiver) Expire(readUntil, now time.Time, steady bool) (lost []string, next time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	blind := now.Sub(readUntil) > Lease
	for id, p := range r.peers {
		over := now.Sub(p.lastSent) >= Lease && readUntil.Sub(p.lastSent) >= Lease-unread
		if !p.gone && (over || blind) {
			r.counts.Expired += uint64(len(p.open))
			r.endInFlight(p)
			r.missed = r.missed || blind || !steady
			if !blind && steady {
				p.gone = true
				lost = append(lost, p.title())
			}
		}
		if end := p.lastSent.Add(Lease); !p.gone && (steady || end.After(now)) && (next.IsZero() || end.Before(next)) {
			next = end
		}
		if p.gone && now.Sub(p.lastSent) > forgetAfter {
			delete(r.peers, id)
		}
	}
	slices.Sort(lost)
	return lost, next
}

// Stats returns the counts so far.
func (r *Receiver) Stats() ReceiverStats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.counts
	for _, p := range r.peers {
		s.Open += len(p.open)
	}
	return s
}

// Routers describes the other routers, sorted by name.
func (r *Receiver) Routers(now time.Time) []Router {
	all := []Router{}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.peers {
		all = append(all, Router{ID: fmt.Sprintf("%016x", p.id), Name: p.beat.Name,
			Alive: p.isAlive(now), LastSent: p.lastSent, Lag: p.lag.Seconds(), Frames: p.frames,
			Bytes: p.bytes, InFlight: len(p.open), Workers: len(p.beat.Workers), Version: int(p.version[0]),
			Text: int(p.version[1]), OtherSecret: p.secret, At: p.inFlight(), workers: p.beat.Workers, digest: p.beat.digest})
	}
	slices.SortFunc(all, func(a, b Router) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return all
}
