package abi

import (
	"bytes"
	"math"
	"testing"
	"unsafe"
)

// TestSizes: the sizes that the contract states are the compiler's. TestPage holds each field's offset to its comment.
func TestSizes(t *testing.T) {
	for name, size := range map[string][2]uintptr{
		"Header":  {unsafe.Sizeof(Header{}), HeaderSize},
		"Row":     {unsafe.Sizeof(Row{}), RowSize},
		"Outcome": {unsafe.Sizeof(Outcome{}), OutcomeSize},
		"KVEvent": {unsafe.Sizeof(KVEvent{}), KVEventSize},
		"Holder":  {unsafe.Sizeof(Holder{}), HolderSize},
		"Talk":    {unsafe.Sizeof(Talk{}), TalkSize},
		"Tier":    {unsafe.Sizeof(Tier{}), TierSize},
	} {
		if size[0] != size[1] {
			t.Errorf("%s has %d bytes; want %d", name, size[0], size[1])
		}
	}
}

// Every layout is a beginning of the newest, whose rows are aligned; so a module of an older one gets a part of each
// struct.
func TestLayouts(t *testing.T) {
	newest := Layouts[0]
	if newest != (Layout{Marker, Version, HeaderSize, RowSize}) || newest.FrameSize(7) != FrameSize(7) {
		t.Errorf("the newest layout is %+v", newest)
	}
	for i, l := range Layouts {
		if l.HeaderBytes%8 != 0 || l.RowBytes%8 != 0 || l.HeaderBytes > HeaderSize || l.RowBytes > RowSize ||
			l.Version>>16 != Version>>16 {
			t.Errorf("%+v", l)
		}
		if i > 0 && l.Version >= Layouts[i-1].Version {
			t.Errorf("%+v does not stand after a newer one", l)
		}
	}
	f := func(l Layout, n, order, size int) {
		t.Helper()
		if l.OrderAt(n) != order || l.FrameSize(n) != size {
			t.Errorf("%s, %d rows: order at %d of %d; want %d of %d", l.Marker, n, l.OrderAt(n), l.FrameSize(n), order, size)
		}
	}
	f(Layouts[0], 64, HeaderSize+64*RowSize, HeaderSize+64*(RowSize+OrderSize))
	f(Layouts[1], 64, 264+64*184, 264+64*188)
	f(Layouts[2], 64, 192+64*160, 192+64*164)
	f(Layouts[3], 64, 128+64*128, 128+64*132)
	f(Layouts[3], 1, 256, 260)
}

// A cost's bits order as it does, which makes a ranking of 256 rows integer minima.
func TestCostSortsByItsBits(t *testing.T) {
	costs := []float64{0, 1e-300, .001, 1, 1.0001, 1e9, math.Inf(1)}
	for i := range costs[1:] {
		if math.Float64bits(costs[i]) >= math.Float64bits(costs[i+1]) {
			t.Errorf("%g and %g", costs[i], costs[i+1])
		}
	}
}

func TestPackWorkedValues(t *testing.T) {
	f := func(row int32, reason, flags uint16, want uint64) {
		t.Helper()
		if got := Pack(row, reason, flags); got != want {
			t.Errorf("Pack(%d, %d, %d) = %#x; want %#x", row, reason, flags, got, want)
		}
		if r, re, fl := Unpack(want); r != row || re != reason || fl != flags {
			t.Errorf("Unpack(%#x) = %d, %d, %d; want %d, %d, %d", want, r, re, fl, row, reason, flags)
		}
	}
	f(3, 7, 0, 0x0000_0007_0000_0003)
	f(0, 1, FlagBind, 0x0001_0001_0000_0000)
	f(Decline, 0, 0, 0xffff_ffff)
	f(Reject, 0, 0, 0xffff_fffe)
}

func TestOptionsWorkedValue(t *testing.T) {
	b := AppendOption(nil, "a", "1")
	if want := []byte{1, 0, 0, 0, 'a', 1, 0, 0, 0, '1'}; !bytes.Equal(b, want) {
		t.Fatalf("AppendOption = % x; want % x", b, want)
	}
	k, v, rest, ok := NextOption(b)
	if k != "a" || v != "1" || len(rest) != 0 || !ok {
		t.Fatalf("NextOption = %q, %q, %v, %v", k, v, rest, ok)
	}
}

func FuzzNextOption(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 'a', 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		for n := 0; len(b) > 0; n++ {
			k, v, rest, ok := NextOption(b)
			if !ok {
				return
			}
			if again := AppendOption(nil, k, v); !bytes.HasPrefix(b, again) {
				t.Fatalf("pair %q=%q does not encode back", k, v)
			}
			b = rest
		}
	})
}
