package sdk

import (
	"math"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// maxRows bounds what wp_frame hands out: 64 Ki rows are 11.25 MiB, and the default memory limit is 16.
const maxRows = 64 << 10

// frame is the area that the host writes a request into. It is a Go object like any other, held by a package
// variable of the guest: the garbage collector does not move it, and as words it is aligned for every field.
type frame struct {
	area []uint64
	req  Request  // views the area's header and order
	rows []Worker // all rows of the area
}

// grow makes room for rows workers, and for the options that the host puts into the same place.
func (f *frame) grow(rows int) unsafe.Pointer {
	if rows < 1 || rows > maxRows {
		imports.Error("sdk: wp_frame is asked for fewer than 1 or more than 65536 workers; split the pool")
		panic("sdk: frame size")
	}
	size := max(abi.FrameSize(rows), abi.MaxOptions)
	f.area = make([]uint64, (size+7)/8)
	f.rows = unsafe.Slice((*Worker)(f.at(abi.HeaderSize)), rows)
	f.req.Header = (*abi.Header)(f.at(0))
	f.req.order = unsafe.Slice((*uint32)(f.at(abi.HeaderSize+rows*abi.RowSize)), rows)
	return f.at(0)
}

func (f *frame) at(offset int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(f.area)), offset)
}

// pick answers the request that stands in the area. It does not allocate. What is rare stands in functions of its own,
// the rest in this one: a call costs 8 ns in wasm, through an interface 22, where an empty pick takes 95.
func (f *frame) pick(s Strategy) Decision {
	if len(f.rows) == 0 || s == nil {
		return unready()
	}
	h := f.req.Header
	if !f.reads(h) {
		return misread()
	}
	h.OrderLen, f.req.drawn = 0, 0
	return s.Route(&f.req, f.rows[:h.Rows])
}

// filter answers which rows of the request that stands in the area it may use.
func (f *frame) filter(s Strategy) Decision {
	g, ok := s.(Filterer)
	if !ok {
		return Decline
	}
	h := f.req.Header
	if len(f.rows) == 0 || !f.reads(h) {
		misread()
		return hold // which is no answer of a filter: to decline would open the fence
	}
	h.OrderLen, f.req.drawn = 0, 0
	return g.Filter(&f.req, f.rows[:h.Rows])
}

// reads reports whether the frame of header h is one of this version, and fits into the area. The compiler inlines it.
func (f *frame) reads(h *abi.Header) bool {
	return h.HeaderBytes == abi.HeaderSize && h.RowBytes == abi.RowSize && h.Version>>16 == abi.Version>>16 &&
		h.Rows-1 < uint32(len(f.rows)) // 0 rows are too many, too
}

// classify answers of the request whose header stands in the area.
func (f *frame) classify(s Strategy) uint64 {
	c, ok := s.(Classifier)
	if !ok || len(f.rows) == 0 {
		return abi.PackClass(0, 0)
	}
	class, weight := c.Classify(&f.req)
	return abi.PackClass(int32(min(max(class, math.MinInt32), math.MaxInt32)), float32(weight))
}

func unready() Decision {
	imports.Error("sdk: wp_pick before wp_frame, or no strategy; call sdk.Register in init")
	return Decline
}

// misread declines a frame that makes no sense. A host writes a module the layout of the module's own version, so a
// frame of another layout is the host's mistake.
func misread() Decision {
	imports.Error("sdk: the frame is of another version, or larger than wp_frame was asked for; rebuild the module")
	return Decline
}

// configure reads the options that stand in the area and answers as wp_configure does.
func (f *frame) configure(s Strategy, n uint32) int32 {
	if s == nil || uint64(n) > uint64(len(f.area))*8 {
		imports.Error("sdk: wp_configure before wp_frame, or no strategy; call sdk.Register in init")
		return abi.ErrInvalid
	}
	if err := Configure(s, unsafe.Slice((*byte)(f.at(0)), n)); err != nil {
		imports.Error(err.Error())
		return abi.ErrInvalid
	}
	return 0
}

// records views n records of the area as the host has written them; nil if there cannot be so many.
func records[T any](f *frame, n uint32) []T {
	var one T
	if uint64(n)*uint64(unsafe.Sizeof(one)) > uint64(len(f.area))*8 {
		imports.Error("sdk: more records than the frame holds, or none was asked for")
		return nil
	}
	return unsafe.Slice((*T)(f.at(0)), n)
}

// reasons writes the names of s's reasons into the area and returns their length.
func (f *frame) reasons(s Strategy) uint32 {
	return uint32(copy(unsafe.Slice((*byte)(f.at(0)), len(f.area)*8), ReasonNames(s)))
}
