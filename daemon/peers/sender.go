package peers

import (
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
)

const (
	// fullFrame is the size at which a frame is closed early: one message of Redis should not be larger.
	fullFrame = 128 << 10
	// maxWaiting bounds the frames that wait while Redis does not take them: half a minute of a busy router.
	maxWaiting = 16 << 20
	// maxOpen bounds the requests in flight that one record lists; each takes some 40 bytes.
	maxOpen = 16_384
	// keptFrames and keptBytes bound the newest frames that the stream took and that Redis may still lose: three seconds
	// of a busy router.
	keptFrames, keptBytes = 128, 4 << 20
)

// Sender writes the changes that one pool of this router makes to its books into frames. It implements [route.Teller].
// It has no clock and no socket: whoever sends the frames passes the time in. Safe for concurrent use.
type Sender struct {
	self   uint64
	owner  owner
	chains *chains

	mu    sync.Mutex // guards the next two
	queue eventQueue
	next  uint64 // id of the next request

	writing sync.Mutex // guards all below; taken before mu
	spare   eventQueue // memory for the next events
	w       writer
	number  uint64    // of the frame in w
	last    time.Time // of the newest record
	open    map[uint64]openRequest
	waiting []sealed // frames that are complete, the oldest first
	bytes   int      // their size
	kept    []sealed // the newest that the stream took, the oldest first
	counts  SenderStats
}

// SenderStats counts the records and messages of a Sender.
type SenderStats struct {
	Traffic
	Dropped uint64 // messages that Redis did not take for too long
	Waiting int    // messages
}

// openRequest is a request in flight that the other routers have been sent.
type openRequest struct {
	route.Sent
	at, first time.Time
	end       position // of its prompt's chain, if it has only one
}

// sealed is a complete frame that waits to be sent.
type sealed struct {
	bytes []byte
	began time.Time
	sum   bool // bytes end in a checksum, from an earlier try
}

// dropFrames drops the frames that wait: they were made with another secret. The events are written first, as they may
// hold the ends of requests in flight, which Open would list for good otherwise.
func (s *Sender) dropFrames() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.writeEvents()
	s.counts.Dropped += uint64(len(s.waiting))
	s.waiting, s.bytes, s.w.records, s.kept = nil, 0, 0, nil
	s.chains.sendInFull()
}

func (s *Sender) hasQueued() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue.events) > 0
}

// writeQueued writes the queued events into frames.
func (s *Sender) writeQueued() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.writeEvents()
}

// writeEvents writes the queued events into frames. The caller holds writing.
func (s *Sender) writeEvents() {
	s.mu.Lock()
	all := s.queue
	s.queue = s.spare
	s.mu.Unlock()
	for i := range all.events {
		s.writeEvent(&all.events[i], &all)
	}
	all.clear()
	s.spare = all
}

// writeEvent writes the record of one event.
func (s *Sender) writeEvent(e *event, all *eventQueue) {
	if e.kind == kindForgotten {
		e.at = s.last // only the order counts
		if e.at.IsZero() {
			return // the others have no record that they could forget
		}
	}
	w := s.beginRecord(e.kind, e.at)
	switch e.kind {
	case kindSent:
		s.writeSent(w, e, all)
	case kindFirst:
		w.uint(e.id)
		w.time(e.at)
		if o, ok := s.open[e.id]; ok {
			o.first = e.at
			s.open[e.id] = o
		}
	case kindAnswer:
		o := s.open[e.id]
		w.uint(e.id)
		w.known(&w.workers, o.Worker)
		w.known(&w.spaces, e.sent.Space)
		w.time(e.at)
		chain, _ := all.chainAt(e.from)
		w.linkedChain(s.chains, chain, o.end)
	case kindEnded:
		delete(s.open, e.id)
		w.uint(e.id)
		w.time(e.at)
	case kindForgotten:
		w.known(&w.workers, e.sent.Worker)
	}
}

func (s *Sender) writeSent(w *writer, e *event, all *eventQueue) {
	flags, from, blocks := byte(0), e.from, uint64(0)
	if !e.first.IsZero() {
		flags |= flagFirst
	}
	if !e.answered.IsZero() {
		flags |= flagAnswered
		from, blocks = e.answer, all.hashes[e.from]
	}
	if e.ended {
		flags |= flagEnded
	}
	s.writeRequest(w, e.id, &e.sent, flags, e.at)
	w.uint(uint64(e.chains))
	var end position
	for range e.chains {
		chain, next := all.chainAt(from)
		end = w.linkedChain(s.chains, chain, position{})
		from = next
	}
	if e.chains != 1 {
		end = position{}
	}
	if flags&flagFirst != 0 {
		w.time(e.first)
	}
	if flags&flagAnswered != 0 {
		w.time(e.answered)
		w.uint(blocks)
	}
	if !e.ended && len(s.open) < maxOpen {
		s.open[e.id] = openRequest{Sent: e.sent, at: e.at, first: e.first, end: end}
	}
}

// beginRecord begins a record of a time. The caller holds writing.
func (s *Sender) beginRecord(k kind, at time.Time) *writer {
	if s.w.records > 0 && len(s.w.b) >= fullFrame {
		s.closeFrame()
	}
	if s.w.records == 0 {
		s.number++
		s.w.begin(&head{version: wireVersion, text: prompt.TextVersion, mark: s.owner.fingerprint(), sender: s.self,
			number: s.number}, at)
	}
	s.last = at
	s.w.kind(k)
	s.counts.Records++
	return &s.w
}

// closeFrame moves the frame in w to those that wait. The caller holds writing.
func (s *Sender) closeFrame() {
	if s.w.records == 0 {
		return
	}
	s.w.records = 0
	if s.bytes+len(s.w.b) > maxWaiting { // Redis has taken none for long: the others cannot catch up any more
		s.counts.Dropped += uint64(len(s.waiting))
		s.waiting, s.bytes = nil, 0
		s.chains.sendInFull()
	}
	frame := append(make([]byte, 0, len(s.w.b)+sumBytes), s.w.b...)
	s.waiting = append(s.waiting, sealed{bytes: frame, began: s.w.began})
	s.bytes += len(frame)
}

// writeRequest writes the fields that the records sent and open share.
func (s *Sender) writeRequest(w *writer, id uint64, sent *route.Sent, flags byte, at time.Time) {
	if sent.Whole {
		flags |= flagWhole
	}
	if sent.Again {
		flags |= flagAgain
	}
	if sent.Moves {
		flags |= flagMoves
	}
	w.uint(id)
	w.known(&w.workers, sent.Worker)
	w.known(&w.spaces, sent.Space)
	w.float(sent.Est)
	w.uint(uint64(max(0, sent.Tokens)))
	w.uint(uint64(max(0, sent.Cached)))
	w.float(sent.Block)
	w.byte(flags)
	w.time(at)
}

// QueueSession queues the change of a session for the other routers.
func (s *Sender) QueueSession(c Session, at time.Time) {
	if len(c.Key) > maxString || len(c.Value) > maxString {
		return
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	s.writeEvents()
	w := s.beginRecord(kindSession, at)
	s.owner.announce(at)
	w.byte(c.Kind)
	w.bytes(c.Key)
	w.bytes(string(c.Value))
	w.uint(uint64(max(0, c.Life.Milliseconds())))
}

// QueueBeat queues a heartbeat.
func (s *Sender) QueueBeat(b *Beat, at time.Time) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.writeEvents()
	w := s.beginRecord(kindBeat, at)
	s.owner.announce(at)
	w.byte(b.flags)
	w.fixed(b.digest)
	w.bytes(b.Name)
	w.uint(uint64(len(b.Workers)))
	for _, n := range b.Workers {
		w.fixed(n.Key)
		w.fixed(n.Address)
		w.bytes(n.ID)
	}
}

// QueueOpen queues the list of all requests in flight, which corrects receivers that have missed records.
func (s *Sender) QueueOpen(at time.Time) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.writeEvents()
	if len(s.open) >= maxOpen {
		return // the list would be incomplete
	}
	w := s.beginRecord(kindOpen, at)
	s.owner.announce(at)
	w.uint(uint64(len(s.open)))
	for id, o := range s.open {
		flags, first := byte(0), o.at
		if !o.first.IsZero() {
			flags, first = flagFirst, o.first
		}
		s.writeRequest(w, id, &o.Sent, flags, o.at)
		w.time(first)
	}
}

// Take completes the frame at hand and returns the frames that wait, up to most bytes, sealed for a send now. They stay
// queued until Confirm removes them.
func (s *Sender) Take(most int, now time.Time) (frames [][]byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.writeEvents()
	s.closeFrame()
	for i := range s.waiting {
		f := &s.waiting[i]
		most -= len(f.bytes)
		if most < 0 && i > 0 {
			break
		}
		f.bytes = seal(f.bytes, f.began, now, f.sum)
		f.sum = true
		frames = append(frames, f.bytes)
	}
	return frames
}

// Confirm confirms that the stream took these frames.
func (s *Sender) Confirm(frames [][]byte) {
	s.writing.Lock()
	defer s.writing.Unlock()
	for _, f := range frames {
		if len(s.waiting) == 0 || &s.waiting[0].bytes[0] != &f[0] {
			return // dropped meanwhile
		}
		s.bytes -= len(s.waiting[0].bytes) - sumBytes
		s.keepFrame(s.waiting[0])
		s.waiting = s.waiting[1:]
		s.counts.Frames++
		s.counts.Bytes += uint64(len(f))
	}
}

// keepFrame keeps a frame that the stream took. The caller holds writing.
func (s *Sender) keepFrame(f sealed) {
	s.kept = append(s.kept, f)
	size := 0
	for i := len(s.kept) - 1; i >= 0; i-- {
		size += len(s.kept[i].bytes)
		if size > keptBytes || len(s.kept)-i > keptFrames {
			s.kept = slices.Delete(s.kept, 0, i+1)
			return
		}
	}
}

// requeue queues the newest frames once more that the stream took, since Redis may have lost them before others read
// them. A router that has applied them ignores the repetition.
func (s *Sender) requeue() {
	s.writing.Lock()
	defer s.writing.Unlock()
	for _, f := range s.kept {
		s.bytes += len(f.bytes) - sumBytes
	}
	s.waiting = append(s.kept, s.waiting...)
	s.kept = nil
}

// Stats returns the counts so far.
func (s *Sender) Stats() SenderStats {
	s.writing.Lock()
	defer s.writing.Unlock()
	counts := s.counts
	counts.Waiting = len(s.waiting)
	return counts
}
