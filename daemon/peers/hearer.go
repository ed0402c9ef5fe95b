package peers

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/route"
)

const (
	// Lease is how long a router counts as alive after its last message: three beats.
	Lease = 3 * time.Second
	// unread is how far the reads of the stream may lag when a lease ends: two reads that wait for new entries.
	unread = 500 * time.Millisecond
	// forgetAfter is how long a dead router stays on the operator's page.
	forgetAfter = time.Minute
	// maxSenders bounds the routers of a pool, and together with maxOpen their requests in flight.
	maxSenders = 256
)

// Hearer applies the frames of other routers to one pool's books. It has no clock and no socket: whoever receives a
// frame passes the time in. Safe for concurrent use.
type Hearer struct {
	pool    *route.Pool
	chains  *chains
	self    uint64
	mark    func() uint64
	session func(s Session)

	mu       sync.Mutex // guards all below
	senders  map[uint64]*sender
	own      map[uint64]uint64 // addresses of this router's workers, by their keys
	replay   bool
	late     bool // the frame at hand fills a gap: its cached chains count, its requests in flight do not
	r        reader
	news     news
	all      [][]uint64 // chains of one request
	asked    bool       // another router wants the list of this router's requests in flight
	restart  bool       // another router lacks the beginnings of chains that this router names
	unlinked bool       // a beginning was unknown since Wants was called
	missed   bool       // another router's requests in flight are unknown
	counts   HearerStats
}

var (
	errVersion = errors.New("its router is of a release whose messages or hashes are others")
	errSecret  = errors.New("its router has another secret")
	errFlood   = errors.New("its router sends too much")
	errMany    = fmt.Errorf("there are more than %d routers", maxSenders)
)

// Hear applies a frame that was sent at that time by this router's clock. It returns an error if the frame is refused.
// It ignores a frame of this router's own.
func (h *Hearer) Hear(frame []byte, sent, now time.Time) error {
	_, err := h.hear(frame, sent, now)
	return err
}

// hear does the work of Hear. It reports whether the frame is this router's own.
func (h *Hearer) hear(frame []byte, sent, now time.Time) (own bool, err error) {
	if by(frame) == h.self {
		return true, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	head, err := h.r.open(frame, sent)
	if err != nil {
		h.counts.Foreign++
		return false, err
	}
	return false, h.believe(&head, len(frame), sent, now)
}

// passOver counts an entry that is too large to be a frame, and that cannot be read.
func (h *Hearer) passOver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counts.Foreign++
}

// believe applies the opened frame if it is new and its sender is accepted.
func (h *Hearer) believe(head *head, bytes int, sent, now time.Time) error {
	s := h.senders[head.sender]
	if s == nil {
		if len(h.senders) >= maxSenders && !h.evict() {
			h.counts.Flooded++
			return errMany
		}
		s = &sender{id: head.sender, first: now, told: sent.Add(-head.waited), open: map[uint64]*route.Heard{}}
		h.senders[head.sender] = s
	}
	s.version, s.secret = [2]byte{head.version, head.text}, false
	s.heard, s.gone = maxTime(s.heard, sent), false
	switch {
	case head.version != wireVersion || head.text != prompt.TextVersion:
		h.counts.Versions++
		return errVersion
	case head.mark != h.mark():
		s.secret = true
		h.counts.Secrets++
		return errSecret
	case head.number <= s.number && !s.misses(head.number):
		h.counts.Repeated++
		return nil
	}
	h.late = head.number <= s.number
	if h.late {
		h.counts.Late++
	} else {
		if head.number > s.number+1 && s.number > 0 {
			h.counts.Gaps++
			h.endAll(s) // any of them may have ended in the gap; a beat requests the list of those in flight
			h.missed = true
			s.missing = [2]uint64{s.number + 1, head.number}
		}
		s.number = head.number
	}
	h.note(s, bytes, sent, now)
	defer h.enterNews(s, now)
	for h.r.more() {
		if !s.allows(sent) && !h.replay {
			h.counts.Flooded++
			h.missed = true // it loses the rest of the frame
			return errFlood
		}
		h.counts.Records++
		h.record(s, now)
	}
	if h.r.bad {
		h.counts.Foreign++
		return errCut
	}
	return nil
}

// evict forgets the gone sender that was silent for longest. In a replay every sender is a candidate, since it is not
// yet known which of them are alive. evict reports whether it found one.
func (h *Hearer) evict() bool {
	var oldest *sender
	for _, s := range h.senders {
		if (s.gone || h.replay) && (oldest == nil || s.heard.Before(oldest.heard)) {
			oldest = s
		}
	}
	if oldest == nil {
		return false
	}
	h.endAll(oldest)
	delete(h.senders, oldest.id)
	return true
}

func (h *Hearer) note(s *sender, bytes int, sent, now time.Time) {
	s.frames++
	s.bytes += uint64(bytes)
	h.counts.Frames++
	h.counts.Bytes += uint64(bytes)
	if h.replay {
		h.counts.Replayed++
		return
	}
	s.lag = max(0, now.Sub(sent))
	h.counts.Lag = s.lag
}

// record applies the next record of the frame, or keeps it for enterNews.
func (h *Hearer) record(s *sender, now time.Time) {
	r := &h.r
	k := kind(r.byte())
	switch k {
	case kindSent, kindFirst, kindAnswer, kindEnded:
		h.readNews(k)
		if h.news.full() {
			h.enterNews(s, now)
		}
		return
	}
	h.enterNews(s, now) // the records before this one
	switch k {
	case kindOpen:
		h.open(s, now)
	case kindBeat:
		h.beat(s)
	case kindForgotten:
		if key := r.known(&r.workers); h.replay && !r.bad && !s.others[key] { // else each router finds a death itself
			h.pool.Forget(key)
		}
	case kindSession:
		c := Session{Kind: r.byte(), Key: r.bytes(), Value: []byte(r.bytes())}
		c.Life = time.Duration(r.upTo(maxLife))*time.Millisecond - now.Sub(r.began)
		if !r.bad && !h.late && h.session != nil {
			h.session(c)
		}
	default:
		r.fail()
	}
}

// open replaces the router's requests in flight by those in the record.
func (h *Hearer) open(s *sender, now time.Time) {
	there := map[uint64]bool{}
	for range h.r.count(minOpen) {
		id, told, flags, at := h.r.request()
		first := h.r.time()
		if h.r.bad || len(there) >= maxOpen {
			return
		}
		there[id] = true
		if s.open[id] != nil || h.late || s.others[told.Worker] {
			continue
		}
		o := h.pool.Hear(&told, &route.Story{At: at}, nil, false, now)
		if flags&flagFirst != 0 {
			o.FirstByte(first)
		}
		if !h.replay {
			o.Begin()
		}
		s.open[id] = o
	}
	for id, o := range s.open {
		if !there[id] && !h.late {
			o.End()
			delete(s.open, id)
		}
	}
}

func (h *Hearer) beat(s *sender) {
	r := &h.r
	b := Beat{flags: r.byte(), digest: r.fixed(), Name: r.bytes()}
	for range r.count(17) {
		b.Workers = append(b.Workers, Named{Key: r.fixed(), Address: r.fixed(), ID: r.bytes()})
	}
	if r.bad || h.late {
		return
	}
	if len(b.Workers) == 0 && b.digest == s.beat.digest {
		b.Workers = s.beat.Workers
	}
	s.beat = b
	s.beats++
	s.compare(h.own)
	if b.flags&beatBye != 0 {
		h.endAll(s)
		s.gone = true
	}
	if h.replay {
		return
	}
	h.asked = h.asked || b.flags&beatAsk != 0
	h.restart = h.restart || b.flags&beatRestart != 0
}

// endAll ends all requests in flight of a router.
func (h *Hearer) endAll(s *sender) {
	for _, o := range s.open {
		o.End()
	}
	clear(s.open)
}

// Replay begins the hearing of frames that were sent earlier. They fill the index; nothing counts as in flight until
// Live.
func (h *Hearer) Replay() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replay = true
}

// Live ends the replay. From now on the unfinished requests of routers that are alive count as in flight.
func (h *Hearer) Live(now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.replay, h.missed = false, true
	for _, s := range h.senders {
		if now.Sub(s.heard) > Lease {
			h.endAll(s)
			s.gone = true
			continue
		}
		for _, o := range s.open {
			o.Begin()
		}
	}
}

// Wants returns what other routers have requested since the last call, and the beat flags by which this router requests
// the same of them.
func (h *Hearer) Wants() (asked, restart bool, flags byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	asked, restart = h.asked, h.restart
	if h.missed {
		flags |= beatAsk
	}
	if h.unlinked {
		flags |= beatRestart
	}
	h.asked, h.restart, h.unlinked, h.missed = false, false, false, false
	return asked, restart, flags
}
