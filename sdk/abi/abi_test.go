package abi

import (
	"bytes"
	"math"
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
	f("Endpoint", unsafe.Offsetof(h.Endpoint), 124)
	f("Caller", unsafe.Offsetof(h.Caller), 128)
	f("Deadline", unsafe.Offsetof(h.Deadline), 136)
	f("Header.Labels", unsafe.Offsetof(h.Labels), 144)
	f("LabelsEpoch", unsafe.Offsetof(h.LabelsEpoch), 148)
	f("RejectStatus", unsafe.Offsetof(h.RejectStatus), 152)
	f("RetryAfter", unsafe.Offsetof(h.RetryAfter), 156)
	f("RejectText", unsafe.Offsetof(h.RejectText), 160)
	f("RejectLen", unsafe.Offsetof(h.RejectLen), 164)
	f("Reserved", unsafe.Offsetof(h.Reserved), 168)
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
	f("Cost", unsafe.Offsetof(r.Cost), 128)
	f("Labels", unsafe.Offsetof(r.Labels), 136)
	f("FlightTokens", unsafe.Offsetof(r.FlightTokens), 144)
	f("KVTokens", unsafe.Offsetof(r.KVTokens), 148)
	f("Price", unsafe.Offsetof(r.Price), 152)
	f("Rank", unsafe.Offsetof(r.Rank), 156)
}

// Every layout is a beginning of the newest, whose rows are aligned; so a module of an older one gets a part of each struct.
func TestLayouts(t *testing.T) {
	newest := Layouts[0]
	if newest != (Layout{Marker, Version, HeaderSize, RowSize}) || newest.FrameSize(7) != FrameSize(7) {
		t.Errorf("the newest layout is %+v", newest)
	}
	for i, l := range Layouts {
		if l.HeaderBytes%8 != 0 || l.RowBytes%8 != 0 || l.HeaderBytes > HeaderSize || l.RowBytes > RowSize || l.Version>>16 != Version>>16 {
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
	f(Layouts[0], 64, 192+64*160, 192+64*164)
	f(Layouts[1], 64, 128+64*128, 128+64*132)
	f(Layouts[1], 1, 256, 260)
}

func TestRecordLayout(t *testing.T) {
	f := func(name string, got uintptr, want int) {
		t.Helper()
		if int(got) != want {
			t.Errorf("%s is at %d; want %d", name, got, want)
		}
	}
	var o Outcome
	f("sizeof Outcome", unsafe.Sizeof(o), OutcomeSize)
	f("Outcome.Now", unsafe.Offsetof(o.Now), 8)
	f("Outcome.Model", unsafe.Offsetof(o.Model), 16)
	f("Outcome.Session", unsafe.Offsetof(o.Session), 24)
	f("Outcome.Tenant", unsafe.Offsetof(o.Tenant), 32)
	f("Outcome.Caller", unsafe.Offsetof(o.Caller), 40)
	f("Outcome.Key", unsafe.Offsetof(o.Key), 48)
	f("Outcome.Worker", unsafe.Offsetof(o.Worker), 56)
	f("Outcome.Status", unsafe.Offsetof(o.Status), 60)
	f("Outcome.PromptTokens", unsafe.Offsetof(o.PromptTokens), 64)
	f("Outcome.CachedTokens", unsafe.Offsetof(o.CachedTokens), 68)
	f("Outcome.OutputTokens", unsafe.Offsetof(o.OutputTokens), 72)
	f("Outcome.Reason", unsafe.Offsetof(o.Reason), 76)
	f("Outcome.TTFT", unsafe.Offsetof(o.TTFT), 80)
	f("Outcome.Seconds", unsafe.Offsetof(o.Seconds), 84)
	f("Outcome.Believed", unsafe.Offsetof(o.Believed), 88)
	f("Outcome.Attempts", unsafe.Offsetof(o.Attempts), 92)
	var e KVEvent
	f("sizeof KVEvent", unsafe.Sizeof(e), KVEventSize)
	f("KVEvent.Hash", unsafe.Offsetof(e.Hash), 8)
	f("KVEvent.Parent", unsafe.Offsetof(e.Parent), 16)
	f("KVEvent.Now", unsafe.Offsetof(e.Now), 24)
	f("KVEvent.Worker", unsafe.Offsetof(e.Worker), 32)
	f("KVEvent.Kind", unsafe.Offsetof(e.Kind), 36)
	f("KVEvent.Tier", unsafe.Offsetof(e.Tier), 40)
	f("KVEvent.Tokens", unsafe.Offsetof(e.Tokens), 44)
	var h Holder
	f("sizeof Holder", unsafe.Sizeof(h), HolderSize)
	f("Holder.Matched", unsafe.Offsetof(h.Matched), 8)
	f("Holder.Row", unsafe.Offsetof(h.Row), 12)
	f("Holder.Blocks", unsafe.Offsetof(h.Blocks), 16)
	f("Holder.TailSecs", unsafe.Offsetof(h.TailSecs), 20)
	var x Tier
	f("sizeof Tier", unsafe.Sizeof(x), TierSize)
	f("Tier.Flags", unsafe.Offsetof(x.Flags), 4)
	f("Tier.Capacity", unsafe.Offsetof(x.Capacity), 8)
	f("Tier.Used", unsafe.Offsetof(x.Used), 16)
	f("Tier.TokenSec", unsafe.Offsetof(x.TokenSec), 24)
	f("Tier.Reuse", unsafe.Offsetof(x.Reuse), 28)
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
