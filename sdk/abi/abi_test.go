package abi

import (
	"bytes"
	"math"
	"testing"
	"unsafe"
)

// at compares an offset that the compiler gives with the one that the contract states.
func at(t *testing.T, name string, got uintptr, want int) {
	t.Helper()
	if int(got) != want {
		t.Errorf("%s is at %d; want %d", name, got, want)
	}
}

func TestHeaderLayout(t *testing.T) {
	var h Header
	at(t, "sizeof Header", unsafe.Sizeof(h), HeaderSize)
	at(t, "Version", unsafe.Offsetof(h.Version), 0)
	at(t, "HeaderBytes", unsafe.Offsetof(h.HeaderBytes), 4)
	at(t, "RowBytes", unsafe.Offsetof(h.RowBytes), 8)
	at(t, "Rows", unsafe.Offsetof(h.Rows), 12)
	at(t, "Seq", unsafe.Offsetof(h.Seq), 16)
	at(t, "Now", unsafe.Offsetof(h.Now), 24)
	at(t, "Random", unsafe.Offsetof(h.Random), 32)
	at(t, "PromptTokens", unsafe.Offsetof(h.PromptTokens), 40)
	at(t, "PromptBlocks", unsafe.Offsetof(h.PromptBlocks), 44)
	at(t, "BlockTokens", unsafe.Offsetof(h.BlockTokens), 48)
	at(t, "MaxTokens", unsafe.Offsetof(h.MaxTokens), 52)
	at(t, "Priority", unsafe.Offsetof(h.Priority), 56)
	at(t, "Flags", unsafe.Offsetof(h.Flags), 60)
	at(t, "Model", unsafe.Offsetof(h.Model), 64)
	at(t, "Session", unsafe.Offsetof(h.Session), 72)
	at(t, "Tenant", unsafe.Offsetof(h.Tenant), 80)
	at(t, "Bound", unsafe.Offsetof(h.Bound), 88)
	at(t, "BestRow", unsafe.Offsetof(h.BestRow), 92)
	at(t, "BestMatch", unsafe.Offsetof(h.BestMatch), 96)
	at(t, "Lambda", unsafe.Offsetof(h.Lambda), 100)
	at(t, "C1", unsafe.Offsetof(h.C1), 104)
	at(t, "C2", unsafe.Offsetof(h.C2), 108)
	at(t, "InvBWL1", unsafe.Offsetof(h.InvBWL1), 112)
	at(t, "InvBWL2", unsafe.Offsetof(h.InvBWL2), 116)
	at(t, "OrderLen", unsafe.Offsetof(h.OrderLen), 120)
	at(t, "Endpoint", unsafe.Offsetof(h.Endpoint), 124)
	at(t, "Caller", unsafe.Offsetof(h.Caller), 128)
	at(t, "Deadline", unsafe.Offsetof(h.Deadline), 136)
	at(t, "Header.Labels", unsafe.Offsetof(h.Labels), 144)
	at(t, "LabelsEpoch", unsafe.Offsetof(h.LabelsEpoch), 148)
	at(t, "RejectStatus", unsafe.Offsetof(h.RejectStatus), 152)
	at(t, "RetryAfter", unsafe.Offsetof(h.RetryAfter), 156)
	at(t, "RejectText", unsafe.Offsetof(h.RejectText), 160)
	at(t, "RejectLen", unsafe.Offsetof(h.RejectLen), 164)
	at(t, "Parent", unsafe.Offsetof(h.Parent), 168)
	at(t, "Turn", unsafe.Offsetof(h.Turn), 176)
	at(t, "SinceLast", unsafe.Offsetof(h.SinceLast), 180)
	at(t, "ExpectedOutput", unsafe.Offsetof(h.ExpectedOutput), 184)
	at(t, "ExpectedTurns", unsafe.Offsetof(h.ExpectedTurns), 188)
	at(t, "Last", unsafe.Offsetof(h.Last), 192)
	at(t, "ParentRow", unsafe.Offsetof(h.ParentRow), 196)
	at(t, "Reserved", unsafe.Offsetof(h.Reserved), 200)
}

func TestRowLayout(t *testing.T) {
	var r Row
	at(t, "sizeof Row", unsafe.Sizeof(r), RowSize)
	at(t, "Worker", unsafe.Offsetof(r.Worker), 0)
	at(t, "State", unsafe.Offsetof(r.State), 4)
	at(t, "Predicted", unsafe.Offsetof(r.Predicted), 8)
	at(t, "GPU", unsafe.Offsetof(r.GPU), 12)
	at(t, "L1", unsafe.Offsetof(r.L1), 16)
	at(t, "L2", unsafe.Offsetof(r.L2), 20)
	at(t, "Running", unsafe.Offsetof(r.Running), 24)
	at(t, "Waiting", unsafe.Offsetof(r.Waiting), 28)
	at(t, "InFlight", unsafe.Offsetof(r.InFlight), 32)
	at(t, "PendingTokens", unsafe.Offsetof(r.PendingTokens), 36)
	at(t, "KVUsage", unsafe.Offsetof(r.KVUsage), 40)
	at(t, "TTFT", unsafe.Offsetof(r.TTFT), 44)
	at(t, "TPOT", unsafe.Offsetof(r.TPOT), 48)
	at(t, "MetricsAge", unsafe.Offsetof(r.MetricsAge), 52)
	at(t, "Weight", unsafe.Offsetof(r.Weight), 56)
	at(t, "Sessions", unsafe.Offsetof(r.Sessions), 60)
	at(t, "Sent", unsafe.Offsetof(r.Sent), 64)
	at(t, "Wait", unsafe.Offsetof(r.Wait), 72)
	at(t, "Slow", unsafe.Offsetof(r.Slow), 80)
	at(t, "Load", unsafe.Offsetof(r.Load), 88)
	at(t, "FreeGPU", unsafe.Offsetof(r.FreeGPU), 96)
	at(t, "FreeL1", unsafe.Offsetof(r.FreeL1), 100)
	at(t, "ReuseGPU", unsafe.Offsetof(r.ReuseGPU), 104)
	at(t, "ReuseL1", unsafe.Offsetof(r.ReuseL1), 108)
	at(t, "Key", unsafe.Offsetof(r.Key), 112)
	at(t, "Lately", unsafe.Offsetof(r.Lately), 120)
	at(t, "Pending", unsafe.Offsetof(r.Pending), 124)
	at(t, "Cost", unsafe.Offsetof(r.Cost), 128)
	at(t, "Labels", unsafe.Offsetof(r.Labels), 136)
	at(t, "FlightTokens", unsafe.Offsetof(r.FlightTokens), 144)
	at(t, "KVTokens", unsafe.Offsetof(r.KVTokens), 148)
	at(t, "Price", unsafe.Offsetof(r.Price), 152)
	at(t, "Rank", unsafe.Offsetof(r.Rank), 156)
	at(t, "HeldTokens", unsafe.Offsetof(r.HeldTokens), 160)
	at(t, "SharedTokens", unsafe.Offsetof(r.SharedTokens), 164)
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
	f(Layouts[0], 64, 224+64*168, 224+64*172)
	f(Layouts[1], 64, 192+64*160, 192+64*164)
	f(Layouts[2], 64, 128+64*128, 128+64*132)
	f(Layouts[2], 1, 256, 260)
}

func TestRecordLayout(t *testing.T) {
	var o Outcome
	at(t, "sizeof Outcome", unsafe.Sizeof(o), OutcomeSize)
	at(t, "Outcome.Now", unsafe.Offsetof(o.Now), 8)
	at(t, "Outcome.Model", unsafe.Offsetof(o.Model), 16)
	at(t, "Outcome.Session", unsafe.Offsetof(o.Session), 24)
	at(t, "Outcome.Tenant", unsafe.Offsetof(o.Tenant), 32)
	at(t, "Outcome.Caller", unsafe.Offsetof(o.Caller), 40)
	at(t, "Outcome.Key", unsafe.Offsetof(o.Key), 48)
	at(t, "Outcome.Worker", unsafe.Offsetof(o.Worker), 56)
	at(t, "Outcome.Status", unsafe.Offsetof(o.Status), 60)
	at(t, "Outcome.PromptTokens", unsafe.Offsetof(o.PromptTokens), 64)
	at(t, "Outcome.CachedTokens", unsafe.Offsetof(o.CachedTokens), 68)
	at(t, "Outcome.OutputTokens", unsafe.Offsetof(o.OutputTokens), 72)
	at(t, "Outcome.Reason", unsafe.Offsetof(o.Reason), 76)
	at(t, "Outcome.TTFT", unsafe.Offsetof(o.TTFT), 80)
	at(t, "Outcome.Seconds", unsafe.Offsetof(o.Seconds), 84)
	at(t, "Outcome.Believed", unsafe.Offsetof(o.Believed), 88)
	at(t, "Outcome.Attempts", unsafe.Offsetof(o.Attempts), 92)
	var e KVEvent
	at(t, "sizeof KVEvent", unsafe.Sizeof(e), KVEventSize)
	at(t, "KVEvent.Hash", unsafe.Offsetof(e.Hash), 8)
	at(t, "KVEvent.Parent", unsafe.Offsetof(e.Parent), 16)
	at(t, "KVEvent.Now", unsafe.Offsetof(e.Now), 24)
	at(t, "KVEvent.Worker", unsafe.Offsetof(e.Worker), 32)
	at(t, "KVEvent.Kind", unsafe.Offsetof(e.Kind), 36)
	at(t, "KVEvent.Tier", unsafe.Offsetof(e.Tier), 40)
	at(t, "KVEvent.Tokens", unsafe.Offsetof(e.Tokens), 44)
	var h Holder
	at(t, "sizeof Holder", unsafe.Sizeof(h), HolderSize)
	at(t, "Holder.Matched", unsafe.Offsetof(h.Matched), 8)
	at(t, "Holder.Row", unsafe.Offsetof(h.Row), 12)
	at(t, "Holder.Blocks", unsafe.Offsetof(h.Blocks), 16)
	at(t, "Holder.TailSecs", unsafe.Offsetof(h.TailSecs), 20)
	var x Tier
	at(t, "sizeof Tier", unsafe.Sizeof(x), TierSize)
	at(t, "Tier.Flags", unsafe.Offsetof(x.Flags), 4)
	at(t, "Tier.Capacity", unsafe.Offsetof(x.Capacity), 8)
	at(t, "Tier.Used", unsafe.Offsetof(x.Used), 16)
	at(t, "Tier.TokenSec", unsafe.Offsetof(x.TokenSec), 24)
	at(t, "Tier.Reuse", unsafe.Offsetof(x.Reuse), 28)
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
