package host

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/sdk/abi"
)

// The SDK's form of ABI 1.2 works in a sandbox: a Go module that uses all of it, from the header of the request to the
// records beside the picks.
func TestTheSDKInTheSandbox(t *testing.T) {
	wasm, err := observer()
	if err != nil {
		t.Fatal(err)
	}
	kv := &store{m: map[string]string{}, n: map[string]int64{}}
	h := newHost(t, Config{CacheDir: t.TempDir(), KV: kv})
	s := load(t, h, wasm, Options{Allow: []string{"kv", "headers:x-tenant"}})
	if got := s.Notices().Wants(); got != abi.WantAll {
		t.Errorf("wants %#x; want all, %#x", got, abi.WantAll)
	}
	if got := fmt.Sprintf("%s, %s, %s", s.ReasonName(9), s.ReasonName(256), s.ReasonName(258)); got != "its turn, batch worker, known elsewhere" {
		t.Errorf("reasons: %s", got)
	}
	fr := frame(70, 0) // the frame grows
	for i := range fr.Rows {
		fr.Rows[i].Cost = float64(100 - i)
	}
	fr.Labels, fr.Header.Labels, fr.Header.LabelsEpoch = []string{"pool=a", "pool=b", "tier=batch"}, 3, 1
	fr.Rows[60].Labels, fr.Rows[61].Labels = 0b110, 0b101
	pick := func(row int, reason uint16) Result {
		t.Helper()
		r := s.Pick(fr)
		if r.Fallback != "" || r.Row != row || r.Reason != reason {
			t.Errorf("%+v (%s); want row %d, reason %d", r, s.Stats().LastError, row, reason)
		}
		return r
	}
	pick(69, 257)
	fr.Caller, fr.Header.QueueDepth = "", 4
	if class, weight, ok := s.Classify(fr); class != 4 || weight != 0 || !ok {
		t.Errorf("class %d, weight %v, %v", class, weight, ok)
	}
	fr.Caller = "nightly"
	if class, weight, ok := s.Classify(fr); class != -5 || weight != .5 || !ok {
		t.Errorf("class %d, weight %v, %v", class, weight, ok)
	}
	pick(61, 256)
	kept := s.Filter(fr)
	if len(kept.Order) != 69 || slices.Contains(kept.Order, 61) || kept.Reason != 256 || kept.Fallback != "" {
		t.Errorf("%+v; want all but row 61", kept)
	}
	fr.Labels, fr.Header.LabelsEpoch = []string{"pool=b", "pool=a", "tier=batch"}, 2
	pick(60, 256)
	fr.Caller, fr.Prefixes, fr.Chain = "", held{}, []uint64{11, 22}
	fr.Rows[2].Worker, fr.Rows[9].Worker = 90, 9
	if all := s.Filter(fr); len(all.Order) != 70 || all.Reject != nil || all.Fallback != "" {
		t.Errorf("%+v; want all rows, without an opinion", all)
	}
	pick(69, 257) // row 9 has nine tiers, of which there are three
	fr.Prefixes = twoTiers{}
	pick(9, 258)
	talks := []abi.Talk{{Value: .9, Seconds: 4}, {Value: .9}, {Seconds: .5}}
	if !s.Plan(talks) || talks[0].Value != .25 || talks[1].Value != 0 || talks[2].Value != 2 {
		t.Errorf("%+v; want values of .25, 0 and 2", talks)
	}
	fr.Headers = headers{"x-tenant": "blocked"}
	r := pick(0, 0)
	want := Rejection{Status: 403, Text: `tenant "blocked" is blocked`, RetryAfter: time.Minute}
	if r.Reject == nil || *r.Reject != want {
		t.Errorf("rejected with %+v; want %+v", r.Reject, want)
	}

	n := s.Notices()
	n.Tick(time.Unix(0, 5))
	for i := range 300 {
		n.FirstToken(&abi.Outcome{Seq: 2})
		n.Complete(&abi.Outcome{OutputTokens: int32(i)})
		n.KVEvents([]abi.KVEvent{{Tokens: 16}, {Tokens: 1}})
	}
	sum := func(key string) int64 {
		v, _ := kv.Add(t.Name(), key, 0, 0)
		return v
	}
	waittest.Until(t, "all notices", func() bool {
		return sum("tick") == 5 && sum("first") == 600 && sum("complete") == 300*299/2 && sum("event") == 17*300
	})
	if st := s.Stats(); st.Discarded != 0 || st.LastError != "" {
		t.Errorf("%+v", st)
	}
}

// twoTiers is held, where every worker has two tiers.
type twoTiers struct{ held }

func (twoTiers) Worker(worker uint32) abi.Holder { return abi.Holder{Key: 1, Blocks: 10} }

func (h twoTiers) Tiers(_ uint32, out *[maxTiers]abi.Tier) int { return h.held.Tiers(2, out) }

func BenchmarkNotices(b *testing.B) {
	kv := &store{m: map[string]string{}, n: map[string]int64{}}
	s := load(b, newHost(b, Config{KV: kv}), wat(b, "notices"), Options{Allow: []string{"kv"}})
	o := &abi.Outcome{OutputTokens: 1}
	b.ReportAllocs()
	for b.Loop() {
		s.Notices().Complete(o)
	}
	st := s.Stats()
	b.ReportMetric(float64(st.Dropped["wp_on_complete"])/float64(b.N), "dropped/op")
	b.ReportMetric(float64(st.Delivered["wp_on_complete"])/b.Elapsed().Seconds(), "callbacks/s")
}
