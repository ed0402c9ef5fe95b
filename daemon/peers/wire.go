package peers

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
)

// A frame is one message of one router in one pool's stream:
//
//	"WH" | version | text version | mark u64 | sender u64 | waited u32 | number uvarint | record... | CRC-32C u32
//
// Integers of fixed size are little endian. waited is the time from the frame's begin to its sending, in tenths of a
// millisecond. Times in records are microseconds after the begin, as varints. A record is a byte for its kind and:
//
//	sent      id, worker, space, est f32, tokens, cached, block f32, flags, time, chains: count, of each a chain;
//	          by its flags: time of the first byte; time of the answer, whose chain it then is, and blocks of the prompt
//	first     id, time
//	answer    id, worker, space, time, chain
//	ended     id, time
//	open      count, of each: id, worker, space, est f32, tokens, cached, block f32, flags, time, time of the first byte
//	beat      flags, digest u64, name, count, of each worker: key u64, address u64, id
//	forgotten worker
//	session   kind u8, key, value, life in milliseconds
//
//	id, tokens, cached, count: uvarint · time: varint · name, id, key, value: uvarint length and bytes
//	worker, space: uvarint; 0 = its 8 bytes follow, n = the n-th that followed in this frame
//	chain: uvarint depth of a beginning that was sent before, u64 its last hash if depth > 0; uvarint count, u64 each
//
// A reader cannot skip a record of an unknown kind: another layout is another version.
const (
	wireVersion = 2
	headBytes   = 2 + 1 + 1 + 8 + 8 + 4
	senderAt    = 12
	waitedAt    = 20
	sumBytes    = 4

	maxFrame  = 1 << 20 // a longer one is refused
	maxString = 1 << 10
	maxTokens = 1 << 40
	maxLife   = 1 << 32 // milliseconds: seven weeks
	minOpen   = 16      // bytes of a request in flight: eight of one byte and two of four
)

type kind byte

const (
	kindSent kind = iota + 1
	kindFirst
	kindAnswer
	kindEnded
	kindOpen
	kindBeat
	kindForgotten
	kindSession
)

const (
	flagWhole = 1 << iota
	flagAgain
	flagFirst    // the first byte has come
	flagAnswered // sent: and the answer
	flagEnded    // sent
	flagMoves    // sent
)

const (
	beatAsk     = 1 << iota // send me your requests in flight
	beatRestart             // send chains in full: I lack their beginnings
	beatBye                 // I end
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writer appends records to a frame.
type writer struct {
	b       []byte
	began   time.Time
	records int
	workers []uint64
	spaces  []uint64
}

// begin makes an empty frame with the head h.
func (w *writer) begin(h *head, at time.Time) {
	b := append(w.b[:0], 'W', 'H', h.version, h.text)
	b = binary.LittleEndian.AppendUint64(b, h.mark)
	b = binary.LittleEndian.AppendUint64(b, h.sender)
	b = append(b, 0, 0, 0, 0)
	w.b = binary.AppendUvarint(b, h.number)
	w.began, w.records = at, 0
	w.workers, w.spaces = w.workers[:0], w.spaces[:0]
}

func (w *writer) kind(k kind)      { w.b = append(w.b, byte(k)); w.records++ }
func (w *writer) byte(v byte)      { w.b = append(w.b, v) }
func (w *writer) uint(v uint64)    { w.b = binary.AppendUvarint(w.b, v) }
func (w *writer) fixed(v uint64)   { w.b = binary.LittleEndian.AppendUint64(w.b, v) }
func (w *writer) time(t time.Time) { w.b = binary.AppendVarint(w.b, t.Sub(w.began).Microseconds()) }
func (w *writer) bytes(s string)   { w.uint(uint64(len(s))); w.b = append(w.b, s...) }
func (w *writer) float(v float64) {
	w.b = binary.LittleEndian.AppendUint32(w.b, math.Float32bits(float32(v)))
}

// known writes a number that often occurs again in the frame.
func (w *writer) known(table *[]uint64, v uint64) {
	for i, k := range *table {
		if k == v {
			w.uint(uint64(i + 1))
			return
		}
	}
	*table = append(*table, v)
	w.uint(0)
	w.fixed(v)
}

func (w *writer) chain(parent uint64, depth int, rest []uint64) {
	w.uint(uint64(depth))
	if depth > 0 {
		w.fixed(parent)
	}
	w.uint(uint64(len(rest)))
	for _, h := range rest {
		w.fixed(h)
	}
}

// seal writes how long a frame has waited, and its checksum. It is called for each send. frame may end in a checksum of
// an earlier call.
func seal(frame []byte, began, now time.Time, sealed bool) []byte {
	if sealed {
		frame = frame[:len(frame)-sumBytes]
	}
	waited := max(0, now.Sub(began)/(100*time.Microsecond))
	binary.LittleEndian.PutUint32(frame[waitedAt:], uint32(min(waited, math.MaxUint32)))
	return binary.LittleEndian.AppendUint32(frame, crc32.Checksum(frame, castagnoli))
}

// head is the beginning of a frame.
type head struct {
	version, text byte
	mark, sender  uint64
	waited        time.Duration
	number        uint64
}

// by returns the sender that a frame names; 0 if it is no frame.
func by(frame []byte) uint64 {
	if len(frame) < headBytes || frame[0] != 'W' || frame[1] != 'H' {
		return 0
	}
	return binary.LittleEndian.Uint64(frame[senderAt:])
}

var (
	errForeign = errors.New("it is no message of a warmpath router")
	errCut     = errors.New("it is cut or changed")
)

// reader reads a frame. Once it has found a fault, it returns zeros.
type reader struct {
	b       []byte
	bad     bool
	began   time.Time
	workers []uint64
	spaces  []uint64
}

// open reads the head of a frame that was sent at that time. It returns without an error if the version is another:
// then only the head is valid.
func (r *reader) open(frame []byte, sent time.Time) (h head, err error) {
	if len(frame) < headBytes+1+sumBytes || frame[0] != 'W' || frame[1] != 'H' {
		return h, errForeign
	}
	if len(frame) > maxFrame {
		return h, fmt.Errorf("it has %d bytes; at most %d", len(frame), maxFrame)
	}
	body, sum := frame[:len(frame)-sumBytes], frame[len(frame)-sumBytes:]
	if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(sum) {
		return h, errCut
	}
	h.version, h.text = frame[2], frame[3]
	h.mark = binary.LittleEndian.Uint64(frame[4:])
	h.sender = by(frame)
	h.waited = time.Duration(binary.LittleEndian.Uint32(frame[waitedAt:])) * 100 * time.Microsecond
	r.b, r.bad, r.began = body[headBytes:], false, sent.Add(-h.waited)
	r.workers, r.spaces = r.workers[:0], r.spaces[:0]
	h.number = r.uint()
	if r.bad {
		return h, errCut
	}
	return h, nil
}

func (r *reader) more() bool { return !r.bad && len(r.b) > 0 }

func (r *reader) fail() { r.bad, r.b = true, nil }

func (r *reader) byte() (v byte) {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v, r.b = r.b[0], r.b[1:]
	return v
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// upTo reads a number and fails if it is larger than most.
func (r *reader) upTo(most uint64) int {
	v := r.uint()
	if v > most {
		r.fail()
		return 0
	}
	return int(v)
}

// count reads the number of items that follow, each of at least size bytes.
func (r *reader) count(size int) int { return r.upTo(uint64(len(r.b) / size)) }

func (r *reader) fixed() uint64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	v := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// float reads a number, and fails if it is infinite, no number or negative.
func (r *reader) float() float64 {
	if len(r.b) < 4 {
		r.fail()
		return 0
	}
	v := float64(math.Float32frombits(binary.LittleEndian.Uint32(r.b)))
	r.b = r.b[4:]
	if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		r.fail()
		return 0
	}
	return v
}

// time reads a time, and fails if it is more than a day from the frame's.
func (r *reader) time() time.Time {
	v, n := binary.Varint(r.b)
	d := time.Duration(v) * time.Microsecond
	if n <= 0 || v > int64(24*time.Hour/time.Microsecond) || v < -int64(24*time.Hour/time.Microsecond) {
		r.fail()
		return r.began
	}
	r.b = r.b[n:]
	return r.began.Add(d)
}

func (r *reader) bytes() string {
	n := r.upTo(maxString)
	if n > len(r.b) {
		r.fail()
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}

func (r *reader) known(table *[]uint64) uint64 {
	i := r.upTo(uint64(len(*table)))
	if i > 0 {
		return (*table)[i-1]
	}
	v := r.fixed()
	*table = append(*table, v)
	return v
}

// chain reads a chain, and appends its hashes to room.
func (r *reader) chain(room []uint64) (parent uint64, depth int, longer []uint64) {
	depth = r.upTo(maxFrame)
	if depth > 0 {
		parent = r.fixed()
	}
	for range r.count(8) {
		room = append(room, r.fixed())
	}
	return parent, depth, room
}
