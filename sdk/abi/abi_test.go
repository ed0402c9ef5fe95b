package abi

import (
	"bytes"
	"testing"
	"unsafe"
)

func TestLayout(t *testing.T) {
	var h Header
	var r Row
	f := func(name string, got uintptr, want int) {
		t.Helper()
		if int(got) != want {
			t.Errorf("%s is at %d; want %d", name, got, want)
		}
	}
	f("sizeof Header", unsafe.Sizeof(h), HeaderSize)
	f("sizeof Row", unsafe.Sizeof(r), RowSize)
	f("Version", unsafe.Offsetof(h.Version), 0)
	f("HeaderBytes", unsafe.Offsetof(h.HeaderBytes), 4)
	f("RowBytes", unsafe.Offsetof(h.RowBytes), 8)
	f("Rows", unsafe.Offsetof(h.Rows), 12)
	f("Seq", unsafe.Offsetof(h.Seq), 16)
	f("Now", unsafe.Offsetof(h.Now), 24)
	f("Random", unsafe.Offsetof(h.Random), 32)
	f("PromptTokens", unsafe.Offsetof(h.PromptTokens), 40)
	f("PromptBlocks", unsafe.Offsetof(h.PromptBlocks), 44)
	f("BlockTokens", unsafe.Offsetof(h.BlockTokens), 48)
	f("MaxTokens", unsafe.Offsetof(h.MaxTokens), 52)
	f("Priority", unsafe.Offsetof(h.Priority), 56)
	f("Flags", unsafe.Offsetof(h.Flags), 60)
	f("Model", unsafe.Offsetof(h.Model), 64)
	f("Session", unsafe.Offsetof(h.Session), 72)
	f("Tenant", unsafe.Offsetof(h.Tenant), 80)
	f("Bound", unsafe.Offsetof(h.Bound), 88)
	f("BestRow", unsafe.Offsetof(h.BestRow), 92)
	f("BestMatch", unsafe.Offsetof(h.BestMatch), 96)
	f("Lambda", unsafe.Offsetof(h.Lambda), 100)
	f("C1", unsafe.Offsetof(h.C1), 104)
	f("C2", unsafe.Offsetof(h.C2), 108)
	f("InvBWL1", unsafe.Offsetof(h.InvBWL1), 112)
	f("InvBWL2", unsafe.Offsetof(h.InvBWL2), 116)
	f("OrderLen", unsafe.Offsetof(h.OrderLen), 120)
	f("Worker", unsafe.Offsetof(r.Worker), 0)
	f("State", unsafe.Offsetof(r.State), 4)
	f("Predicted", unsafe.Offsetof(r.Predicted), 8)
	f("GPU", unsafe.Offsetof(r.GPU), 12)
	f("L1", unsafe.Offsetof(r.L1), 16)
	f("L2", unsafe.Offsetof(r.L2), 20)
	f("Running", unsafe.Offsetof(r.Running), 24)
	f("Waiting", unsafe.Offsetof(r.Waiting), 28)
	f("InFlight", unsafe.Offsetof(r.InFlight), 32)
	f("PendingTokens", unsafe.Offsetof(r.PendingTokens), 36)
	f("KVUsage", unsafe.Offsetof(r.KVUsage), 40)
	f("TTFT", unsafe.Offsetof(r.TTFT), 44)
	f("TPOT", unsafe.Offsetof(r.TPOT), 48)
	f("MetricsAge", unsafe.Offsetof(r.MetricsAge), 52)
	f("Weight", unsafe.Offsetof(r.Weight), 56)
	f("Sessions", unsafe.Offsetof(r.Sessions), 60)
	f("Sent", unsafe.Offsetof(r.Sent), 64)
	f("Wait", unsafe.Offsetof(r.Wait), 72)
	f("Slow", unsafe.Offsetof(r.Slow), 80)
	f("Load", unsafe.Offsetof(r.Load), 88)
	f("FreeGPU", unsafe.Offsetof(r.FreeGPU), 96)
	f("FreeL1", unsafe.Offsetof(r.FreeL1), 100)
	f("ReuseGPU", unsafe.Offsetof(r.ReuseGPU), 104)
	f("ReuseL1", unsafe.Offsetof(r.ReuseL1), 108)
	f("Key", unsafe.Offsetof(r.Key), 112)
	f("Lately", unsafe.Offsetof(r.Lately), 120)
	f("Pending", unsafe.Offsetof(r.Pending), 124)
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
