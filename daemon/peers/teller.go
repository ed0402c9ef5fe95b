package peers

import (
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/prompt"
	"github.com/warmpath/warmpath/daemon/route"
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
	patience              = 3 * time.Millisecond // for so long a request on its way leaves a round to one that ends
)

// Teller writes the changes that one pool of this router makes to its books into frames. It implements [route.Teller].
// It has no clock and no socket: whoever sends the frames passes the time in. Safe for concurrent use.
type Teller struct {
	self   uint64
	mark   func() uint64
	chains *chains
	wake   func(at time.Time)      // a record waits since then; called with a lock held, so it only hints
	pass   func(at time.Time) bool // lets a request's goroutine begin a round; nil = there are no rounds

	mu   sync.Mutex // guards the next two
	said said
	next uint64 // id of the next request

	writing sync.Mutex // guards all below; taken before mu
	spare   said       // memory for the next notes
	w       writer
	number  uint64    // of the frame in w
	last    time.Time // of the newest record
	open    map[uint64]told
	waiting []sealed // frames that are complete, the oldest first
	bytes   int      // their size
	kept    []sealed // the newest that the stream took, the oldest first
	counts  TellerStats
}

// TellerStats counts the records and messages of a Teller.
type TellerStats struct {
	Records uint64
	Frames  uint64 // messages that were sent
	Bytes   uint64
	Dropped uint64 // messages that Redis did not take for too long
	Waiting int    // messages
}

// told is a request in flight that the other routers have been sent.
type told struct {
	route.Sent
	at, first time.Time
	end       place // of its prompt's chain, if it has only one
}

// sealed is a complete frame that waits to be sent.
type sealed struct {
	bytes []byte
	began time.Time
	sum   bool // bytes end in a checksum, from an earlier try
}

// restart drops the frames that wait: they were made with another secret. The notes are written first, as they may hold
// the ends of requests in flight, which Open would list for good otherwise.
func (t *Teller) restart() {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.write()
	t.counts.Dropped += uint64(len(t.waiting))
	t.waiting, t.bytes, t.w.records, t.kept = nil, 0, 0, nil
	t.chains.restart()
}

func (t *Teller) unsaid() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.said.acts) > 0
}

// catchUp writes the notes into frames.
func (t *Teller) catchUp() {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.write()
}

// write writes the notes into frames. The caller holds writing.
func (t *Teller) write() {
	t.mu.Lock()
	all := t.said
	t.said = t.spare
	t.mu.Unlock()
	for i := range all.acts {
		t.act(&all.acts[i], &all)
	}
	all.clear()
	t.spare = all
}

// act writes the record of one of the acts.
func (t *Teller) act(a *act, all *said) {
	if a.kind == kindForgotten {
		a.at = t.last // only the order counts
		if a.at.IsZero() {
			return // the others have no record that they could forget
		}
	}
	w := t.record(a.kind, a.at)
	switch a.kind {
	case kindSent:
		t.sent(w, a, all)
	case kindFirst:
		w.uint(a.id)
		w.time(a.at)
		if o, ok := t.open[a.id]; ok {
			o.first = a.at
			t.open[a.id] = o
		}
	case kindAnswer:
		o := t.open[a.id]
		w.uint(a.id)
		w.known(&w.workers, o.Worker)
		w.known(&w.spaces, a.sent.Space)
		w.time(a.at)
		chain, _ := all.read(a.from)
		w.told(t.chains, chain, o.end)
	case kindEnded:
		delete(t.open, a.id)
		w.uint(a.id)
		w.time(a.at)
	case kindForgotten:
		w.known(&w.workers, a.sent.Worker)
	}
}

func (t *Teller) sent(w *writer, a *act, all *said) {
	flags, from, blocks := byte(0), a.from, uint64(0)
	if !a.first.IsZero() {
		flags |= flagFirst
	}
	if !a.answered.IsZero() {
		flags |= flagAnswered
		from, blocks = a.answer, all.hashes[a.from]
	}
	if a.ended {
		flags |= flagEnded
	}
	t.request(w, a.id, &a.sent, flags, a.at)
	w.uint(uint64(a.chains))
	var end place
	for range a.chains {
		chain, next := all.read(from)
		end = w.told(t.chains, chain, place{})
		from = next
	}
	if a.chains != 1 {
		end = place{}
	}
	if flags&flagFirst != 0 {
		w.time(a.first)
	}
	if flags&flagAnswered != 0 {
		w.time(a.answered)
		w.uint(blocks)
	}
	if !a.ended && len(t.open) < maxOpen {
		t.open[a.id] = told{Sent: a.sent, at: a.at, first: a.first, end: end}
	}
}

// record begins a record of a time. The caller holds writing.
func (t *Teller) record(k kind, at time.Time) *writer {
	if t.w.records > 0 && len(t.w.b) >= fullFrame {
		t.complete()
	}
	if t.w.records == 0 {
		t.number++
		t.w.begin(&head{version: wireVersion, text: prompt.TextVersion, mark: t.mark(), sender: t.self, number: t.number}, at)
	}
	t.last = at
	t.w.kind(k)
	t.counts.Records++
	return &t.w
}

// complete moves the frame in w to those that wait. The caller holds writing.
func (t *Teller) complete() {
	if t.w.records == 0 {
		return
	}
	t.w.records = 0
	if t.bytes+len(t.w.b) > maxWaiting { // Redis has taken none for long: the others cannot catch up any more
		t.counts.Dropped += uint64(len(t.waiting))
		t.waiting, t.bytes = nil, 0
		t.chains.restart()
	}
	frame := append(make([]byte, 0, len(t.w.b)+sumBytes), t.w.b...)
	t.waiting = append(t.waiting, sealed{bytes: frame, began: t.w.began})
	t.bytes += len(frame)
}

// request writes the fields that the records sent and open share.
func (t *Teller) request(w *writer, id uint64, s *route.Sent, flags byte, at time.Time) {
	if s.Whole {
		flags |= flagWhole
	}
	if s.Again {
		flags |= flagAgain
	}
	w.uint(id)
	w.known(&w.workers, s.Worker)
	w.known(&w.spaces, s.Space)
	w.float(s.Est)
	w.uint(uint64(max(0, s.Tokens)))
	w.uint(uint64(max(0, s.Cached)))
	w.float(s.Block)
	w.byte(flags)
	w.time(at)
}

// Session queues the change of a session for the other routers.
func (t *Teller) Session(s Session, at time.Time) {
	if len(s.Key) > maxString || len(s.Value) > maxString {
		return
	}
	t.writing.Lock()
	defer t.writing.Unlock()
	t.write()
	w := t.record(kindSession, at)
	t.wake(at)
	w.byte(s.Kind)
	w.bytes(s.Key)
	w.bytes(string(s.Value))
	w.uint(uint64(max(0, s.Life.Milliseconds())))
}

// Beat queues a heartbeat.
func (t *Teller) Beat(b *Beat, at time.Time) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.write()
	w := t.record(kindBeat, at)
	t.wake(at)
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

// Open queues the list of all requests in flight, which corrects hearers that have missed records.
func (t *Teller) Open(at time.Time) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.write()
	if len(t.open) >= maxOpen {
		return // the list would be incomplete
	}
	w := t.record(kindOpen, at)
	t.wake(at)
	w.uint(uint64(len(t.open)))
	for id, o := range t.open {
		flags, first := byte(0), o.at
		if !o.first.IsZero() {
			flags, first = flagFirst, o.first
		}
		t.request(w, id, &o.Sent, flags, o.at)
		w.time(first)
	}
}

// Take completes the frame at hand and returns the frames that wait, up to most bytes, sealed for a send now. They stay
// queued until Taken confirms them.
func (t *Teller) Take(most int, now time.Time) (frames [][]byte) {
	t.writing.Lock()
	defer t.writing.Unlock()
	t.write()
	t.complete()
	for i := range t.waiting {
		f := &t.waiting[i]
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

// Taken confirms that the stream took these frames.
func (t *Teller) Taken(frames [][]byte) {
	t.writing.Lock()
	defer t.writing.Unlock()
	for _, f := range frames {
		if len(t.waiting) == 0 || &t.waiting[0].bytes[0] != &f[0] {
			return // dropped meanwhile
		}
		t.bytes -= len(t.waiting[0].bytes) - sumBytes
		t.keep(t.waiting[0])
		t.waiting = t.waiting[1:]
		t.counts.Frames++
		t.counts.Bytes += uint64(len(f))
	}
}

// keep keeps a frame that the stream took. The caller holds writing.
func (t *Teller) keep(f sealed) {
	t.kept = append(t.kept, f)
	size := 0
	for i := len(t.kept) - 1; i >= 0; i-- {
		size += len(t.kept[i].bytes)
		if size > keptBytes || len(t.kept)-i > keptFrames {
			t.kept = slices.Delete(t.kept, 0, i+1)
			return
		}
	}
}

// again queues the newest frames once more that the stream took, since Redis may have lost them before others read
// them. A router that has applied them ignores the repetition.
func (t *Teller) again() {
	t.writing.Lock()
	defer t.writing.Unlock()
	for _, f := range t.kept {
		t.bytes += len(f.bytes) - sumBytes
	}
	t.waiting = append(t.kept, t.waiting...)
	t.kept = nil
}

// Stats returns the counts so far.
func (t *Teller) Stats() TellerStats {
	t.writing.Lock()
	defer t.writing.Unlock()
	s := t.counts
	s.Waiting = len(t.waiting)
	return s
}
