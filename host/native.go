package host

import (
	"encoding/binary"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

// nativePick chooses as a module's wp_pick does. order has room for one alternative a row; nativePick writes their
// number to h.OrderLen.
type nativePick func(h *abi.Header, rows []abi.Row, order []uint32) (decision uint64)

// Native makes a strategy of a function of this process, outside of the sandbox: the oracle that a module is held to.
// It gets no notices and calls no function of the host. wants has bits of abi.WantRows.
func Native(name string, wants uint32, pick func(h *abi.Header, rows []abi.Row, order []uint32) uint64) *Strategy {
	s := &Strategy{program: &program{name: name}, native: pick}
	s.notices.wants = wants & abi.WantRows
	s.binds.Store(true) // it has no self-test, and may
	return s
}

// choose does what Strategy.Pick does, by the function. A panic of the function reaches the caller.
func (p nativePick) choose(s *Strategy, f *Frame) Result {
	n := f.Choices()
	h := &f.Header
	h.Version, h.HeaderBytes, h.RowBytes = abi.Version, abi.HeaderSize, abi.RowSize
	order := make([]uint32, len(f.Rows))
	row, code, flags := abi.Unpack(p(h, f.Rows, order))
	switch {
	case row == abi.Decline:
		fb := s.fallback(f, decline)
		fb.Reason = code
		return fb
	case row == abi.Reject, row == abi.Hold:
		r := Result{Row: Fallback(f), Reason: code, Flags: flags}
		if row == abi.Reject {
			r.Reject = &Rejection{Status: int(h.RejectStatus)}
		} else {
			r.Hold = time.Duration(h.HoldMillis) * time.Millisecond
		}
		f.order(r.Row, nil, false)
		r.Order = f.Order
		return r
	case row < 0 || int(row) >= n:
		return s.fallback(f, badIndex)
	}
	alternatives := make([]byte, 0, len(order)*abi.OrderSize)
	for _, k := range order[:min(int(h.OrderLen), len(order))] {
		alternatives = binary.LittleEndian.AppendUint32(alternatives, k)
	}
	named := f.order(int(row), alternatives, flags&abi.FlagOnly != 0)
	pair, _ := pairOf(f, int(row), h.PairRow)
	return Result{Row: int(row), Order: f.Order, Named: named, Reason: code, Flags: flags, Pair: pair}
}
