package host

import (
	"encoding/binary"
	"reflect"
	"testing"
	"unsafe"

	"github.com/warmpath/warmpath/sdk/abi"
)

// held is an index of two workers: 1, a candidate, holds the first block of any prompt, and 9, which is none, all of
// it.
type held struct{}

func (held) Best(chain []uint64) (worker, blocks uint32) {
	switch chain[0] {
	case 11:
		return 9, uint32(len(chain))
	case 13: // who has just gone
		return 0, 1
	}
	return 0, 0
}

func (held) Worker(worker uint32) abi.Holder {
	return abi.Holder{Key: 100 * uint64(worker), Blocks: 10 * worker, TailSecs: -1, Row: 5, Matched: 99}
}

func (held) MatchOne(chain []uint64, worker uint32) uint32 {
	return uint32(chain[len(chain)-1]) + worker
}

func (held) Tiers(worker uint32, out *[maxTiers]abi.Tier) int {
	out[0] = abi.Tier{Kind: abi.TierGPU, Capacity: 1000, Used: 10, Reuse: -1}
	out[1] = abi.Tier{Kind: abi.TierL1, Capacity: 5000, TokenSec: 1e-5}
	return int(worker)
}

// asking returns what an import answers to a pick of fr, and the size bytes at 512 that it has written.
func asking(t *testing.T, h *Host, fr *Frame, name string, size int, args ...uint64) (int32, []byte) {
	t.Helper()
	data := make([]byte, 16)
	binary.LittleEndian.PutUint64(data, 3)
	binary.LittleEndian.PutUint64(data[8:], 4)
	s, err := h.Load(ctx, "m", caller(t, importNamed(name), args, string(data)), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(ctx)
	if r := s.Pick(fr); r.Fallback != "" {
		t.Fatalf("%s%v: %q: %s", name, args, r.Fallback, s.Stats().LastError)
	}
	mem := s.instances.slots[0].in.mem
	v, _ := mem.ReadUint32Le(65000)
	b, _ := mem.Read(512, uint32(size))
	return int32(v), append([]byte(nil), b...)
}

func TestPrefixImports(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	fr := frame(4, 1)
	fr.Prefixes, fr.Chain = held{}, []uint64{11, 22}
	for i := range fr.Rows {
		fr.Rows[i].Key, fr.Rows[i].Predicted = 100*uint64(i), uint32(i)
	}
	holder := func(want int32, wantHolder abi.Holder, name string, args ...uint64) {
		t.Helper()
		got, b := asking(t, h, fr, name, abi.HolderSize, args...)
		if x := *(*abi.Holder)(unsafe.Pointer(&b[0])); got != want || x != wantHolder {
			t.Errorf("%s%v = %d, %+v; want %d, %+v", name, args, got, x, want, wantHolder)
		}
	}
	none := abi.Holder{}
	best := abi.Holder{Key: 900, Matched: 2, Row: -1, Blocks: 90, TailSecs: -1}
	holder(24, best, "prefix_best", 512, 24)
	holder(24, none, "prefix_best", 512, 23)
	holder(-3, none, "prefix_best", 0xffff_fff0, 24)
	fr.Rows[3].Worker = 9
	best.Row = 3
	holder(24, best, "prefix_best", 512, 100)
	fr.Rows[3].Worker = 3
	holder(24, abi.Holder{Key: 200, Matched: 2, Row: 2, Blocks: 20, TailSecs: -1}, "prefix_worker", 2, 512, 24)
	holder(-1, none, "prefix_worker", 4, 512, 24)
	holder(-1, none, "prefix_worker", 1<<32-1, 512, 24)
	f := func(want int32, name string, args ...uint64) []byte {
		t.Helper()
		got, b := asking(t, h, fr, name, 2*abi.TierSize, args...)
		if got != want {
			t.Errorf("%s%v = %d; want %d", name, args, got, want)
		}
		return b
	}
	f(4+1, "prefix_match_key", 1, 0, 2)
	f(3+2, "prefix_match_key", 2, 0, 1)
	f(-1, "prefix_match_key", 4, 0, 2)
	f(-3, "prefix_match_key", 1, 0, abi.MaxChain+1)
	f(-3, "prefix_match_key", 1, 65535, 2)
	f(0, "prefix_match_key", 1, 0, 0)
	b := f(64, "cache_tiers", 2, 512, 64)
	got := unsafe.Slice((*abi.Tier)(unsafe.Pointer(&b[0])), 2)
	want := []abi.Tier{{Kind: abi.TierGPU, Capacity: 1000, Used: 10, Reuse: -1}, {Kind: abi.TierL1, Capacity: 5000, TokenSec: 1e-5}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("tiers %+v; want %+v", got, want)
	}
	f(64, "cache_tiers", 2, 512, 32)
	f(0, "cache_tiers", 0, 512, 64)
	fr.Chain = nil
	f(-1, "prefix_best", 512, 24)
	fr.Chain = []uint64{12}
	f(-1, "prefix_best", 512, 24)
	fr.Chain = []uint64{13}
	f(-1, "prefix_best", 512, 24)
	fr.Prefixes = nil
	f(-1, "prefix_best", 512, 24)
	f(-1, "prefix_worker", 1, 512, 24)
	f(-1, "prefix_match_key", 1, 0, 2)
	f(-1, "cache_tiers", 1, 512, 64)
}

// headers are those of one request.
type headers map[string]string

func (h headers) Header(name string) (string, bool) { v, ok := h[name]; return v, ok }

// The texts of 1.1: the caller, the labels, and of the headers those alone that the strategy may see.
func TestTextsOfTheRequest(t *testing.T) {
	h := newHost(t, Config{Slots: 1})
	fr := frame(4, 1)
	fr.Caller, fr.Labels, fr.Header.Labels = "team-a", []string{"tier=batch", "tier=live", "left=over"}, 2
	fr.Headers = headers{"x-tenant": "acme", "cookie": "secret", "x-long": "0123456789"}
	f := func(allow, want string, wantN int32, kind int32, index int, name string, size uint64) {
		t.Helper()
		data := make([]byte, 512, 600)
		wasm := caller(t, importNamed("str"), []uint64{uint64(kind), uint64(index), 512, size}, string(append(data, name...)))
		var o Options
		if allow != "" {
			o.Allow = []string{"headers:" + allow}
		}
		s, err := h.Load(ctx, "m", wasm, o)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close(ctx)
		if r := s.Pick(fr); r.Fallback != "" {
			t.Fatalf("%q: %s", r.Fallback, s.Stats().LastError)
		}
		mem := s.instances.slots[0].in.mem
		n, _ := mem.ReadUint32Le(65000)
		b, _ := mem.Read(512, uint32(max(len(want), 1)))
		if int32(n) != wantN || want != "" && string(b) != want {
			t.Errorf("str(%d, %d) with %q allowed, at %q: %d, %q; want %d, %q", kind, index, allow, name, int32(n), b, wantN, want)
		}
	}
	f("", "team-a", 6, abi.StrCaller, 0, "", 100)
	f("", "tier=batch", 10, abi.StrLabel, 0, "", 100)
	f("", "tier=live", 9, abi.StrLabel, 1, "", 100)
	f("", "", -1, abi.StrLabel, 2, "", 100) // beyond Header.Labels
	f("", "", -1, abi.StrLabel, -1, "", 100)
	f("x-tenant", "acme", 4, abi.StrHeader, 8, "X-Tenant", 100)
	f("x-tenant", "", -4, abi.StrHeader, 6, "cookie", 100)
	f("", "", -4, abi.StrHeader, 8, "x-tenant", 100)
	f("x-absent", "", -1, abi.StrHeader, 8, "x-absent", 100)
	f("x-long", "x-long", 10, abi.StrHeader, 6, "x-long", 9) // the name stays where the value does not fit
	f("x-tenant", "", -3, abi.StrHeader, 0, "", 100)
	f("x-tenant", "", -3, abi.StrHeader, 129, "x-tenant", 100)
	f("x-tenant", "", -3, abi.StrHeader, -1, "x-tenant", 100)
	fr.Headers = nil
	f("x-tenant", "", -1, abi.StrHeader, 8, "x-tenant", 100)
}
