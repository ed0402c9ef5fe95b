package measure

import (
	"math"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Elsewhere is the load of a worker that neither this router nor those that share with it have caused: direct clients
// send it, or another router. It is the load on the worker's page of metrics, less the most that the known routers
// had there in the last seconds. The most, because the page is older than what is known here: without it, requests
// that have just ended would count as those of other routers. The worker's row has this load added to the router's
// own.
type Elsewhere struct {
	known, held peak      // requests of the known routers in flight, and their tokens of KV
	pages       [3]burden // by the newest pages, the newest first
	tokens      float64   // that a prompt has to compute
	est         float64   // seconds of that on a worker of slowness 1
	read        bool      // a page has come
}

// burden is requests, of them those whose prefill has not begun, and the tokens of KV that all of them hold.
type burden struct{ requests, waiting, kv float64 }

const (
	spareKV  = .1 // of a cache: what the page may say beyond twice the KV of requests whose answers are guesses
	chance   = 3  // standard deviations of a number of requests that comes by chance
	flagrant = 32 // requests beyond that which count at once
)

// Note records the requests and tokens of KV that the known routers have there.
func (e *Elsewhere) Note(requests, held int, now time.Duration) {
	e.known.note(requests, now)
	e.held.note(held, now)
}

// Seen is what a page of metrics says of a worker's load.
type Seen struct {
	Running, Waiting int
	Used, Capacity   float64 // tokens of KV
	Est              float64 // seconds of prefill of a request on a worker of slowness 1
	C1               float64 // seconds of prefill a token
}

// Take takes a page.
func (e *Elsewhere) Take(s *Seen) {
	all := s.Running + s.Waiting
	more := float64(max(0, all-e.known.most()))
	share := more / float64(max(1, all))
	is := burden{requests: more, waiting: share * float64(s.Waiting), kv: share * s.Used}
	if over := s.Used - 2*float64(e.held.most()); over > spareKV*s.Capacity {
		is.kv = max(is.kv, over)
	}
	e.pages = [...]burden{is, e.pages[0], e.pages[1]}
	if !e.read {
		e.pages = [...]burden{is, is, is}
	}
	e.read, e.est, e.tokens = true, s.Est, s.Est/s.C1
}

// Clear drops the load: the page's gauges are left over from requests that have ended.
func (e *Elsewhere) Clear() { *e = Elsewhere{known: e.known, held: e.held} }

// Requests returns the requests on the newest page, as far as they are from elsewhere.
func (e *Elsewhere) Requests() float64 { return e.pages[0].requests }

// beyond returns the part of the load that counts. least is the load that each worker has at least. It does not
// count, and neither does an excess that is so small that it may be chance. Unless the load is flagrant, it must be
// on three pages. Otherwise several routers, which see each other's load seconds later, would all leave one worker
// for the next.
func (e *Elsewhere) beyond(least float64) burden {
	usual, l := least+chance*math.Sqrt(least+1)-chance, e.pages[0]
	if l.requests <= usual+flagrant {
		for _, p := range e.pages[1:] {
			l = burden{min(l.requests, p.requests), min(l.waiting, p.waiting), min(l.kv, p.kv)}
		}
	}
	if l.requests == 0 { // of requests that have ended
		return l
	}
	share := max(0, l.requests-usual) / l.requests
	return burden{share * l.requests, share * l.waiting, share * l.kv}
}

// Fill adds the load to the worker's row.
func (e *Elsewhere) Fill(r *abi.Row, least float64) {
	l := e.beyond(least)
	r.InFlight += uint32(l.requests)
	r.FlightTokens += uint32(l.kv)
	r.HeldTokens += uint32(l.kv)
	r.PendingTokens += uint32(l.waiting * e.tokens)
	r.Pending += float32(l.waiting * e.est)
	r.Wait += r.Slow * l.waiting * e.est
}

// peakSpan is the time over which a peak is kept, at least, and half of that at most.
const peakSpan = 2 * time.Second

// peak is the most of a number in the last few seconds.
type peak struct {
	from           time.Duration // when the present span began
	before, within int           // the most in the span before, and in this one
	last           int
}

// note records the number as of now.
func (p *peak) note(n int, now time.Duration) {
	if now >= p.from+peakSpan {
		p.before = p.within
		if now >= p.from+2*peakSpan {
			p.before = p.last
		}
		p.from, p.within = now, p.last
	}
	p.last, p.within = n, max(p.within, n)
}

func (p *peak) most() int { return max(p.before, p.within) }
