package host

import (
	"errors"
	"math/rand/v2"
	"slices"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

// Frame is one request on its way to a module. Not safe for concurrent use; keep it in a pool, since its slices are
// reused. Mind the zero value: Header.Bound, BestRow, Last and ParentRow of 0 name row 0; Reset sets each to -1.
type Frame struct {
	// The caller fills Header except Version, HeaderBytes, RowBytes, Rows, OrderLen, the fields of a rejection,
	// HoldMillis and PairRow; Random is drawn if it is 0. Pick fills Row.Own for a module that uses it.
	Header abi.Header
	Rows   []abi.Row // the candidates; at least one
	Order  []int32   // written by Pick

	Session, Model, Tenant, Caller string       // what str answers
	Request                        string       // its id, for the log
	WorkerIDs                      []string     // of the rows, by index
	Labels                         []string     // names of the label bits, as tier=batch; Header.Labels is their number
	Headers                        HeaderSource // of the request; nil = none
	Chain                          []uint64     // the prompt's block hashes
	Prefixes                       Prefixes     // nil = nothing is known

	// Began is when this pick began. It spares the pick a look at the clock; without it the pick's first slice of fuel is
	// not timed.
	Began time.Time

	// OwnGiven leaves Row.Own as the caller has filled it.
	OwnGiven bool

	seen   []bool // scratch of order
	wishes []Wish // of the pick under way
}

// Reset empties f and keeps its memory.
func (f *Frame) Reset() {
	*f = Frame{Rows: f.Rows[:0], Order: f.Order[:0], WorkerIDs: f.WorkerIDs[:0], Chain: f.Chain[:0], seen: f.seen,
		wishes: f.wishes[:0],
		Header: abi.Header{Bound: -1, BestRow: -1, Last: -1, ParentRow: -1}}
}

// began is Began on the clock of the budgets; 0 = not known.
func (f *Frame) began() time.Duration {
	if f.Began.IsZero() {
		return 0
	}
	return f.Began.Sub(epoch)
}

// prepare sets the fields that the caller does not.
func (f *Frame) prepare() {
	h := &f.Header
	h.Rows, h.OrderLen = uint32(len(f.Rows)), 0
	h.RejectStatus, h.RetryAfter, h.RejectText, h.RejectLen, h.HoldMillis = 0, 0, 0, 0, 0
	h.PairRow = -1
	f.wishes = f.wishes[:0]
	if h.Random == 0 {
		h.Random = rand.Uint64()
	}
}

// Choices returns how many rows may be chosen: all but those of prefillers, which are the last ones.
func (f *Frame) Choices() int { return len(f.Rows) - int(f.Header.Prefillers) }

// push writes header and rows into area, a module's frame of layout l: the rows in one copy if they are of our own
// version, else row by row.
func (f *Frame) push(area []byte, l *abi.Layout) {
	h := &f.Header
	h.Version, h.HeaderBytes, h.RowBytes = l.Version, uint32(l.HeaderBytes), uint32(l.RowBytes)
	copy(area, f.headerBytes()[:l.HeaderBytes])
	rows, to := f.rowBytes(), area[l.HeaderBytes:]
	if l.RowBytes == abi.RowSize {
		copy(to, rows)
		return
	}
	for at := 0; len(rows) > 0; at += l.RowBytes {
		copy(to[at:at+l.RowBytes], rows)
		rows = rows[abi.RowSize:]
	}
}

// order fills f.Order: the chosen row, the alternatives, and unless only is set all rows that are missing. The missing
// ones begin at a place that turns with the sequence number. If they began at the chosen row, everything that a dead
// worker loses would go to its neighbour. It returns how many rows stand before these.
func (f *Frame) order(row int, alternatives []byte, only bool) (named int) {
	n := f.Choices()
	if cap(f.Order) < n {
		f.Order = make([]int32, 0, n+n/2)
	}
	if n <= 0 {
		f.Order = f.Order[:0]
		return 0
	}
	o := append(f.Order[:0], int32(row))
	turn := int(f.Header.Seq % uint64(n))
	if len(alternatives) == 0 {
		for i := 0; i < n && !only; i++ {
			k := turn + i
			if k >= n {
				k -= n
			}
			if k != row {
				o = append(o, int32(k))
			}
		}
		f.Order = o
		return 1
	}
	if cap(f.seen) < n {
		f.seen = make([]bool, n+n/2)
	}
	seen := f.seen[:n]
	clear(seen)
	seen[row] = true
	for i := 0; i+abi.OrderSize <= len(alternatives); i += abi.OrderSize {
		a := alternatives[i : i+4]
		k := uint32(a[0]) | uint32(a[1])<<8 | uint32(a[2])<<16 | uint32(a[3])<<24
		if k < uint32(n) && !seen[k] {
			seen[k] = true
			o = append(o, int32(k))
		}
	}
	named = len(o)
	for i := 0; i < n && !only; i++ {
		k := turn + i
		if k >= n {
			k -= n
		}
		if !seen[k] {
			o = append(o, int32(k))
		}
	}
	f.Order = o
	return named
}

// Keep drops all rows but these, which ascend, as Filter gives them.
func (f *Frame) Keep(rows []int32) {
	h := &f.Header
	before, _ := slices.BinarySearch(rows, int32(f.Choices()))
	h.Prefillers = uint32(len(rows) - before)
	for _, row := range []*int32{&h.Bound, &h.BestRow, &h.Last, &h.ParentRow} {
		*row = int32(slices.Index(rows, *row))
	}
	h.Next = uint32(1 + slices.Index(rows, int32(h.Next)-1))
	for n, i := range rows {
		f.Rows[n] = f.Rows[i]
		f.WorkerIDs[n] = f.WorkerIDs[i]
	}
	f.Rows, f.WorkerIDs = f.Rows[:len(rows)], f.WorkerIDs[:len(rows)]
}

// headerBytes and rowBytes return the structs in their wire form, which is their layout in Go: abi's test checks that.
func (f *Frame) headerBytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&f.Header)), abi.HeaderSize)
}

func (f *Frame) rowBytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f.Rows))), len(f.Rows)*abi.RowSize)
}

// AppendTo appends the frame in the bytes of sdk/abi: the header, which counts the rows, then each row.
func (f *Frame) AppendTo(b []byte) []byte {
	whole := Frame{Header: f.Header, Rows: f.Rows}
	whole.Header.Rows = uint32(len(f.Rows))
	return append(append(b, whole.headerBytes()...), whole.rowBytes()...)
}

func littleEndian() error {
	one := uint16(1)
	if *(*byte)(unsafe.Pointer(&one)) != 1 {
		return errors.New("host: this machine is big-endian, the frame is little-endian; " +
			"run on amd64, arm64 or another little-endian machine")
	}
	return nil
}
