package sdk

import (
	"testing"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

type probe struct {
	seen []Worker
	seq  uint64
}

func (p *probe) Route(r *Request, workers []Worker) Decision {
	p.seen, p.seq = workers, r.Seq
	r.Then(2)
	r.Then(0)
	return To(1).Because(7).Bind()
}

// put writes a request of n rows at the given strides, as the host does.
func put(f *frame, n, head, stride int) *abi.Header {
	h := (*abi.Header)(f.at(0))
	*h = abi.Header{Version: abi.Version, HeaderBytes: uint32(head), RowBytes: uint32(stride), Rows: uint32(n), Seq: 42}
	for i := range n {
		*(*Worker)(f.at(head + i*stride)) = Worker{Worker: uint32(100 + i), Key: uint64(i)}
	}
	return h
}

func TestFramePick(t *testing.T) {
	f := func(what string, n, head, stride int, change func(h *abi.Header), ok bool) {
		t.Helper()
		var fr frame
		at := fr.grow(8)
		h := put(&fr, n, head, stride)
		change(h)
		p := &probe{}
		d := fr.pick(p)
		if !ok {
			if d != Decline || p.seen != nil {
				t.Errorf("%s: %#x; want a decline without a call", what, d)
			}
			return
		}
		if d != To(1).Because(7).Bind() || len(p.seen) != n || p.seq != 42 {
			t.Errorf("%s: %#x, %d rows, seq %d", what, d, len(p.seen), p.seq)
		}
		for i, w := range p.seen {
			if w.Worker != uint32(100+i) || w.Key != uint64(i) {
				t.Errorf("%s: row %d is %+v", what, i, w)
			}
		}
		order := unsafe.Slice((*uint32)(unsafe.Add(at, abi.HeaderSize+8*abi.RowSize)), 2)
		if h.OrderLen != 2 || order[0] != 2 || order[1] != 0 {
			t.Errorf("%s: order %v of %d; want 2, 0", what, order, h.OrderLen)
		}
	}
	same := func(*abi.Header) {}
	const head, row = abi.HeaderSize, abi.RowSize
	f("as agreed", 8, head, row, same, true)
	f("one row", 1, head, row, same, true)
	f("another minor version", 4, head, row, func(h *abi.Header) { h.Version++ }, true)
	f("another major version", 4, head, row, func(h *abi.Header) { h.Version = 2 << 16 }, false)
	f("no rows", 0, head, row, same, false)
	f("more rows than asked for", 8, head, row, func(h *abi.Header) { h.Rows = 9 }, false)
	f("longer rows", 4, head, row+32, same, false) // a host writes each module the layout that its marker names
	f("longer header", 4, head+64, row, same, false)
	f("the layout of 1.0", 4, 128, 128, same, false)
	f("odd stride", 4, head, row+1, same, false)
	f("stride beyond all", 4, head, row, func(h *abi.Header) { h.RowBytes = 1 << 31 }, false)
}

// A filter keeps rows in the order area. A frame that it cannot read must not open a fence, as a decline would.
func TestFrameFilter(t *testing.T) {
	var fr frame
	at := fr.grow(8)
	h := put(&fr, 5, abi.HeaderSize, abi.RowSize)
	order := unsafe.Slice((*uint32)(unsafe.Add(at, abi.HeaderSize+8*abi.RowSize)), 2)
	if d := fr.filter(&all{}); d != To(2).Because(9) || order[0] != 1 || order[1] != 3 {
		t.Errorf("%#x, rows %v; want 2 rows, 1 and 3", d, order)
	}
	if d := fr.filter(&probe{}); d != Decline {
		t.Errorf("%#x of a strategy that does not filter", d)
	}
	h.Rows = 9
	if d := fr.filter(&all{}); d != hold {
		t.Errorf("%#x of a frame that cannot be read", d)
	}
	if d := new(frame).filter(&all{}); d != hold {
		t.Errorf("%#x before grow", d)
	}
}

func TestFrameBeforeUse(t *testing.T) {
	var f frame
	if d := f.pick(&probe{}); d != Decline {
		t.Errorf("pick before grow: %#x", d)
	}
	if e := f.configure(&probe{}, 4); e != abi.ErrInvalid {
		t.Errorf("configure before grow: %d", e)
	}
	f.grow(1)
	if d := f.pick(nil); d != Decline {
		t.Errorf("pick without a strategy: %#x", d)
	}
	if e := f.configure(nil, 0); e != abi.ErrInvalid {
		t.Errorf("configure without a strategy: %d", e)
	}
}

func TestFrameGrow(t *testing.T) {
	for _, n := range []int{1, 7, 512, maxRows} {
		var f frame
		at := f.grow(n)
		if uintptr(at)%8 != 0 || len(f.area)*8 < abi.FrameSize(n) || len(f.area)*8 < abi.MaxOptions {
			t.Errorf("grow(%d): %d bytes at %p", n, len(f.area)*8, at)
		}
		order := uintptr(unsafe.Pointer(unsafe.SliceData(f.req.order))) - uintptr(at)
		if end := order + uintptr(4*n); end != uintptr(abi.FrameSize(n)) {
			t.Errorf("grow(%d): order ends at %d; want %d", n, end, abi.FrameSize(n))
		}
	}
	for _, n := range []int{-1, 0, maxRows + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("grow(%d) did not panic", n)
				}
			}()
			new(frame).grow(n)
		}()
	}
}

func TestFrameDoesNotAllocate(t *testing.T) {
	var f frame
	f.grow(8)
	put(&f, 8, 128, 128)
	p := &probe{}
	if n := testing.AllocsPerRun(100, func() { f.pick(p) }); n != 0 {
		t.Errorf("%v allocations a pick; want 0", n)
	}
}

func TestFrameConfigure(t *testing.T) {
	var f frame
	f.grow(1)
	write := func(b []byte) uint32 { return uint32(copy(unsafe.Slice((*byte)(f.at(0)), abi.MaxOptions), b)) }
	if e := f.configure(&probe{}, 0); e != 0 {
		t.Errorf("no options: %d", e)
	}
	if e := f.configure(&probe{}, write(abi.AppendOption(nil, "a", "1"))); e != abi.ErrInvalid {
		t.Errorf("an option nobody knows: %d", e)
	}
	if e := f.configure(&probe{}, write([]byte{9, 0, 0, 0})); e != abi.ErrInvalid {
		t.Errorf("a cut pair: %d", e)
	}
	if e := f.configure(&probe{}, 1<<31); e != abi.ErrInvalid {
		t.Errorf("more than the area: %d", e)
	}
}

func TestDecision(t *testing.T) {
	d := To(3).Because(7)
	if d != 0x0000_0007_0000_0003 || d.Row() != 3 || d.Reason() != 7 || d.Binds() {
		t.Errorf("To(3).Because(7) = %#x", d)
	}
	if d := To(0).Bind().Because(9).Because(1); d != 0x0001_0001_0000_0000 || !d.Binds() {
		t.Errorf("To(0).Bind().Because(1) = %#x", d)
	}
	if Decline.Row() != int(abi.Decline) || Reject.Row() != int(abi.Reject) {
		t.Errorf("Decline, Reject = %d, %d", Decline.Row(), Reject.Row())
	}
}

func TestReasonText(t *testing.T) {
	for r := ReasonNone; int(r) < len(reasons); r++ {
		if r.String() == "" {
			t.Errorf("reason %d has no text", r)
		}
	}
	if got := ReasonCost.String(); got != "least cost" {
		t.Errorf("ReasonCost = %q: the tables are out of step", got)
	}
	if got := (ReasonOwn + 4).String(); got != "reason 260" {
		t.Errorf("ReasonOwn+4 = %q", got)
	}
}

func TestThenIsBounded(t *testing.T) {
	r := NewRequest(new(abi.Header), make([]uint32, 2))
	for i := range 5 {
		r.Then(i)
	}
	if got := r.Order(); len(got) != 2 || got[0] != 0 || got[1] != 1 {
		t.Errorf("Order() = %v; want 0, 1: the rest has no room", got)
	}
}

// urgent classifies by the request's priority.
type urgent struct{ probe }

func (*urgent) Classify(r *Request) (class int, weight float64) { return int(r.Priority) << 40, 2.5 }

// A strategy that classifies is asked of the request in its frame. One that does not has class 0 and no weight.
func TestFrameClassify(t *testing.T) {
	var fr frame
	fr.grow(8)
	put(&fr, 1, abi.HeaderSize, abi.RowSize).Priority = -3
	if class, weight := abi.UnpackClass(fr.classify(&urgent{})); class != -1<<31 || weight != 2.5 {
		t.Errorf("class %d, weight %v; want the least class, and 2.5", class, weight)
	}
	if class, weight := abi.UnpackClass(fr.classify(&probe{})); class != 0 || weight != 0 {
		t.Errorf("class %d, weight %v of a strategy that does not classify", class, weight)
	}
	if class, weight := abi.UnpackClass(new(frame).classify(&urgent{})); class != 0 || weight != 0 {
		t.Errorf("class %d, weight %v without a frame", class, weight)
	}
}
