package sdk

import (
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// maxRows bounds what wp_frame hands out: 64 Ki rows are 8.25 MiB, half of the default memory limit.
const maxRows = 64 << 10

// frame is the area that the host writes a request into. It is a Go object like any other, held by the package variable
// below: the garbage collector does not move it, and as words it is aligned for every field.
type frame struct {
	area   []uint64
	max    int      // rows that fit
	copied []Worker // rows of a host with a wider stride, packed to ours; grown when first needed
	req    Request
}

var shared frame

// grow makes room for rows workers, and for the options that the host puts into the same place.
func (f *frame) grow(rows int) unsafe.Pointer {
	if rows < 1 || rows > maxRows {
		imports.Error("sdk: wp_frame is asked for fewer than 1 or more than 65536 workers; split the pool")
		panic("sdk: frame size")
	}
	size := max(abi.FrameSize(rows), abi.MaxOptions)
	*f = frame{area: make([]uint64, (size+7)/8), max: rows}
	f.req.order = unsafe.Slice((*uint32)(f.at(f.orderAt())), rows)
	return f.at(0)
}

// orderAt is fixed by max alone: the guest's sizes count here, whatever stride a later host uses for its rows.
func (f *frame) orderAt() int { return abi.HeaderSize + f.max*abi.RowSize }

func (f *frame) at(offset int) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(f.area)), offset)
}

// pick answers the request that stands in the area. It does not allocate.
func (f *frame) pick(s Strategy) Decision {
	if s == nil || len(f.area) == 0 {
		imports.Error("sdk: wp_pick before wp_frame, or no strategy; call sdk.Register in init")
		return Decline
	}
	f.req.Header = (*abi.Header)(f.at(0))
	rows := f.rows(f.req.Header)
	if rows == nil {
		imports.Error("sdk: the frame is of another version, or larger than wp_frame was asked for; rebuild the module")
		return Decline
	}
	return f.req.Route(s, rows)
}

// rows returns the rows as they stand, or packed if a later minor version of the host has longer ones; nil if the frame
// makes no sense to this version.
func (f *frame) rows(h *abi.Header) []Worker {
	n, head, stride := int(h.Rows), int(h.HeaderBytes), int(h.RowBytes)
	if h.Version>>16 != abi.Version>>16 || n < 1 || n > f.max {
		return nil
	}
	if head == abi.HeaderSize && stride == abi.RowSize {
		return unsafe.Slice((*Worker)(f.at(abi.HeaderSize)), n)
	}
	if head < abi.HeaderSize || stride < abi.RowSize || (head|stride)%8 != 0 ||
		uint64(head)+uint64(n)*uint64(stride) > uint64(f.orderAt()) {
		return nil
	}
	if f.copied == nil {
		f.copied = make([]Worker, f.max)
	}
	for i := range n {
		f.copied[i] = *(*Worker)(f.at(head + i*stride))
	}
	return f.copied[:n]
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
