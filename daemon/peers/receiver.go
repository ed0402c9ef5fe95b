package peers

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

const (
	// Lease is how long a router counts as alive after its last message: three beats.
	Lease = 3 * time.Second
	// unread is how far the reads of the stream may lag when a lease ends: two reads that wait for new entries.
	unread = 500 * time.Millisecond
	// forgetAfter is how long a dead router stays on the operator's page.
	forgetAfter = time.Minute
	// maxPeers bounds the routers of a pool, and together with maxOpen their requests in flight.
	maxPeers = 256
)

// Receiver applies the frames of other routers to one pool's books. It has no clock and no socket: whoever receives a
// frame passes the time in. Safe for concurrent use.
type Receiver struct {
	pool   *route.Pool
	chains *chains
	self   uint64
	owner  owner
	drains *drains

	mu       sync.Mutex // guards all below
	peers    map[uint64]*peer
	own      map[uint64]uint64 // addresses of this router's workers, by their keys
	replay   bool
	late     bool // the frame at hand fills a gap: its cached chains count, its requests in flight do not
	in       reader
	request  requestRecord // memory for the record at hand
	whole    [][]uint64    // memory for its chains
	asked    bool          // another router wants the list of this router's requests in flight
	restart  bool          // another router lacks the beginnings of chains that this router names
	unlinked bool          // a beginning was unknown since TakeRequests was called
	missed   bool          // another router's requests in flight are unknown
	counts   ReceiverStats
}

var (
	errVersion = errors.New("its router is of a release whose messages or hashes are others")
	errSecret  = errors.New("its router has another secret")
	errFlood   = errors.New("its router sends too much")
	errMany    = fmt.Errorf("there are more than %d routers", maxPeers)
)

// Apply applies a frame that was sent at that time by this router's clock. It returns an error if the frame is refused.
// It ignores a frame of this router's own.
func (r *Receiver) Apply(frame []byte, sent, now time.Time) error {
	_, err := r.applyUnlessOwn(frame, sent, now)
	return err
}

// applyUnlessOwn does the work of Apply. It reports whether the frame is this router's own.
func (r *Receiver) applyUnlessOwn(frame []byte, sent, now time.Time) (own bool, err error) {
	if by(frame) == r.self {
		return true, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	head, err := r.in.open(frame, sent)
	if err != nil {
		r.counts.Foreign++
		return false, err
	}
	return false, r.applyFrame(&head, len(frame), sent, now)
}

// countUnreadable counts an entry that is too large to be a frame, and that cannot be read.
func (r *Receiver) countUnreadable() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Foreign++
}

// applyFrame applies the opened frame if it is new and its sender is accepted.
func (r *Receiver) applyFrame(head *head, bytes int, sent, now time.Time) error {
	p, foreign := r.peers[head.sender], r.isForeign(head)
	if p == nil {
		if foreign && r.foreigners() >= maxForeign {
			return r.refuse(head)
		}
		if len(r.peers) >= maxPeers && !r.evictPeer() {
			r.counts.Flooded++
			return errMany
		}
		p = &peer{id: head.sender, first: now, recordedAt: sent.Add(-head.waited), open: map[uint64]*route.Heard{}}
		r.peers[head.sender] = p
	}
	p.version, p.secret, p.foreign = [2]byte{head.version, head.text}, false, foreign
	p.lastSent, p.gone = maxTime(p.lastSent, sent), false
	switch {
	case foreign:
		err := r.refuse(head)
		p.secret = err == errSecret
		return err
	case head.number <= p.number && !p.fillsGap(head.number):
		r.counts.Repeated++
		return nil
	}
	r.late = head.number <= p.number
	if r.late {
		r.counts.Late++
	} else {
		if head.number > p.number+1 && p.number > 0 {
			r.counts.Gaps++
			r.endInFlight(p) // any of them may have ended in the gap; a beat requests the list of those in flight
			r.missed = true
			p.missing = [2]uint64{p.number + 1, head.number}
		}
		p.number = head.number
	}
	r.countFrame(p, bytes, sent, now)
	for r.in.more() {
		if !p.allowsRecord(sent) && !r.replay {
			r.counts.Flooded++
			r.missed = true // it loses the rest of the frame
			return errFlood
		}
		r.counts.Records++
		r.applyRecord(p, now)
	}
	if r.in.bad {
		r.counts.Foreign++
		return errCut
	}
	return nil
}

// maxForeign bounds the routers of another release or secret that are shown to operators. Whoever may write to the
// stream can make up as many as he likes.
const maxForeign = 16

// isForeign reports whether a frame is of a router of another release or secret.
func (r *Receiver) isForeign(head *head) bool {
	return head.version != wireVersion || head.text != prompt.TextVersion || head.mark != r.owner.fingerprint()
}

// foreigners counts the routers whose frames are refused.
func (r *Receiver) foreigners() (n int) {
	for _, p := range r.peers {
		if p.foreign {
			n++
		}
	}
	return n
}

// refuse counts a foreign frame and returns why it is refused.
func (r *Receiver) refuse(head *head) error {
	if head.version != wireVersion || head.text != prompt.TextVersion {
		r.counts.Versions++
		return errVersion
	}
	r.counts.Secrets++
	return errSecret
}

// evictPeer forgets the gone or foreign peer that was silent for longest. During a replay every peer is a candidate,
// since the receiver does not know yet which of them are alive. evictPeer reports whether it found one.
func (r *Receiver) evictPeer() bool {
	var oldest *peer
	for _, p := range r.peers {
		if (p.gone || p.foreign || r.replay) && (oldest == nil || p.lastSent.Before(oldest.lastSent)) {
			oldest = p
		}
	}
	if oldest == nil {
		return false
	}
	r.endInFlight(oldest)
	delete(r.peers, oldest.id)
	return true
}

func (r *Receiver) countFrame(p *peer, bytes int, sent, now time.Time) {
	p.frames++
	p.bytes += uint64(bytes)
	r.counts.Frames++
	r.counts.Bytes += uint64(bytes)
	if r.replay {
		r.counts.Replayed++
		return
	}
	p.lag = max(0, now.Sub(sent))
	r.counts.Lag = p.lag
}

// applyRecord applies the next record of the frame.
func (r *Receiver) applyRecord(p *peer, now time.Time) {
	in := &r.in
	k := kind(in.byte())
	switch k {
	case kindSent, kindFirst, kindAnswer, kindEnded:
		r.applyRequest(p, k, now)
	case kindOpen:
		r.applyOpen(p, now)
	case kindBeat:
		r.applyBeat(p)
	case kindForgotten:
		if key := in.known(&in.workers); r.replay && !in.bad && !p.others[key] { // else each router finds a death itself
			r.pool.Forget(key)
		}
	case kindSession:
		c := Session{Kind: in.byte(), Key: in.bytes(), Value: []byte(in.bytes())}
		c.Life = time.Duration(in.upTo(maxLife))*time.Millisecond - now.Sub(in.began)
		switch {
		case in.bad || r.late:
		case c.Kind == drainRecord:
			if !r.replay && !p.others[worker.KeyOf(c.Key)] {
				r.drains.apply(&c, now)
			}
		case c.Kind == handOverRecord:
			if !r.replay && !p.others[worker.KeyOf(c.Key)] {
				r.drains.handOver(&c, now)
			}
		case c.Kind == seenRecord:
			if all, ok := readSeen(c.Value); ok && !r.replay && c.Life > 0 {
				r.pool.Workers.Hear(slices.DeleteFunc(all, func(s worker.Seen) bool { return p.others[s.Key] }), now)
			}
		default:
			r.owner.session(c)
		}
	default:
		in.fail()
	}
}

// applyOpen replaces the router's requests in flight by those in the record.
func (r *Receiver) applyOpen(p *peer, now time.Time) {
	there := map[uint64]bool{}
	for range r.in.count(minOpen) {
		id, sent, flags, at := r.in.request()
		first := r.in.time()
		if r.in.bad || len(there) >= maxOpen {
			return
		}
		there[id] = true
		if p.open[id] != nil || r.late || p.others[sent.Worker] {
			continue
		}
		o := r.pool.Hear(&sent, &route.Outcome{At: at}, nil, false, now)
		if flags&flagFirst != 0 {
			o.FirstByte(first)
		}
		if !r.replay {
			o.Begin()
		}
		p.open[id] = o
	}
	for id, o := range p.open {
		if !there[id] && !r.late {
			o.End()
			delete(p.open, id)
		}
	}
}

func (r *Receiver) applyBeat(p *peer) {
	in := &r.in
	b := Beat{flags: in.byte(), digest: in.fixed(), Name: in.bytes()}
	for range in.count(17) {
		b.Workers = append(b.Workers, Named{Key: in.fixed(), Address: in.fixed(), ID: in.bytes()})
	}
	if in.bad || r.late {
		return
	}
	if len(b.Workers) == 0 && b.digest == p.beat.digest {
		b.Workers = p.beat.Workers
	}
	p.beat = b
	p.beats++
	p.findOtherWorkers(r.own)
	if b.flags&beatBye != 0 {
		r.endInFlight(p)
		p.gone = true
	}
	if r.replay {
		return
	}
	r.asked = r.asked || b.flags&beatAsk != 0
	r.restart = r.restart || b.flags&beatRestart != 0
}

// endInFlight ends all requests in flight of a router.
func (r *Receiver) endInFlight(p *peer) {
	for _, o := range p.open {
		o.End()
	}
	clear(p.open)
}

// BeginReplay makes Apply accept frames that were sent earlier. They fill the index; nothing counts as in flight until
// EndReplay.
func (r *Receiver) BeginReplay() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replay = true
}

// EndReplay ends the replay. From now on the unfinished requests of routers that are alive count as in flight.
func (r *Receiver) EndReplay(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.replay, r.missed = false, true
	for _, p := range r.peers {
		if now.Sub(p.lastSent) > Lease {
			r.endInFlight(p)
			p.gone = true
			continue
		}
		for _, o := range p.open {
			o.Begin()
		}
	}
}

// TakeRequests returns what other routers have requested since the last call, and the beat flags by which this router
// requests the same of them.
func (r *Receiver) TakeRequests() (asked, restart bool, flags byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked, restart = r.asked, r.restart
	if r.missed {
		flags |= beatAsk
	}
	if r.unlinked {
		flags |= beatRestart
	}
	r.asked, r.restart, r.unlinked, r.missed = false, false, false, false
	return asked, restart, flags
}
