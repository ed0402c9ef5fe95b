package host

import (
	"testing"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

// A module of an older version runs unchanged: it gets its own layout of a frame that is filled for the newest, over
// every size of a fleet, and its order is read where its version has it.
func TestModulesOfOlderVersions(t *testing.T) {
	for _, module := range []string{"abi_1_0", "abi_1_1", "abi_1_2"} {
		s := load(t, newHost(t, Config{}), wat(t, module), Options{})
		for _, n := range []int{1, 2, 16, 64, 65, 300} {
			f := frame(n, 0)
			for i := range f.Rows {
				f.Rows[i].Key, f.Rows[i].Cost, f.Rows[i].Labels, f.Rows[i].Rank = uint64(i)+1, 1e9, 1<<63-1, 7
				f.Rows[i].HeldTokens, f.Rows[i].SharedTokens = 1<<32-1, 1<<32-1
			}
			f.Header.Caller, f.Header.Parent, f.Header.Configured = 1<<63, 1<<63, 7
			f.Header.Gap, f.Header.Uneven = 1e9, 1<<32-1
			r := s.Pick(f)
			if r.Fallback != "" || r.Row != n-1 || len(r.Order) != n || r.Order[0] != int32(n-1) || n > 1 && r.Order[1] != 0 {
				t.Errorf("%s, %d workers: %+v (%s)", module, n, r, s.Stats().LastError)
			}
		}
	}
}

// One frame goes to modules of all versions, as with a shadow.
func TestOneFrameForAllVersions(t *testing.T) {
	h := newHost(t, Config{})
	oldest, old := load(t, h, wat(t, "abi_1_0"), Options{}), load(t, h, wat(t, "abi_1_1"), Options{})
	now := load(t, h, wat(t, "tiny"), Options{})
	f := frame(5, 0)
	for i := range f.Rows {
		f.Rows[i].Key, f.Rows[i].Rank = uint64(i)+1, 7
	}
	for range 3 {
		if r := oldest.Pick(f); r.Fallback != "" || r.Row != 4 {
			t.Errorf("1.0: %+v", r)
		}
		if r := old.Pick(f); r.Fallback != "" || r.Row != 4 {
			t.Errorf("1.1: %+v", r)
		}
		if r := now.Pick(f); r.Fallback != "" || r.Row != 0 || r.Reason != 9 {
			t.Errorf("1.2: %+v", r)
		}
	}
}

func TestOffsets(t *testing.T) {
	var h abi.Header
	f := func(name string, got uintptr, want int) {
		t.Helper()
		if int(got) != want {
			t.Errorf("%s is at %d; want %d", name, got, want)
		}
	}
	f("OrderLen", unsafe.Offsetof(h.OrderLen), offOrderLen)
	f("RejectStatus", unsafe.Offsetof(h.RejectStatus), offRejectStatus)
	f("RetryAfter", unsafe.Offsetof(h.RetryAfter), offRetryAfter)
	f("RejectText", unsafe.Offsetof(h.RejectText), offRejectText)
	f("RejectLen", unsafe.Offsetof(h.RejectLen), offRejectLen)
	f("HoldMillis", unsafe.Offsetof(h.HoldMillis), offHoldMillis)
	f("PairRow", unsafe.Offsetof(h.PairRow), offPairRow)
}
