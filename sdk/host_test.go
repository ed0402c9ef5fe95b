package sdk_test

import (
	"errors"
	"hash/fnv"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/sdk"
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/sdktest"
)

func TestTexts(t *testing.T) {
	long := strings.Repeat("m", 1000)
	h := &sdktest.Host{Session: "s", Model: long, Workers: []string{"a", "b"}, Matches: []int{3}, Hashes: []uint64{7}}
	h.Use(t)
	if sdk.Session() != "s" || sdk.Model() != long || sdk.Tenant() != "" ||
		sdk.WorkerID(1) != "b" || sdk.WorkerID(2) != "" {
		t.Errorf("%q, %d bytes, %q, %q, %q", sdk.Session(), len(sdk.Model()), sdk.Tenant(), sdk.WorkerID(1), sdk.WorkerID(2))
	}
	if sdk.PrefixMatch(0) != 3 || sdk.PrefixMatch(1) != 0 || sdk.PrefixHash(0) != 7 || sdk.PrefixHash(1) != 0 {
		t.Error("prefix answers are not the host's")
	}
}

func TestStore(t *testing.T) {
	h := &sdktest.Host{}
	h.Use(t)
	f := func(what string, got, want error) {
		t.Helper()
		if !errors.Is(got, want) {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	_, err := sdk.KVGet("k")
	f("get of nothing", err, sdk.ErrNotFound)
	f("create", sdk.KVSwap("k", "", "one", 60), nil)
	f("create again", sdk.KVSwap("k", "", "two", 60), sdk.ErrConflict)
	f("swap", sdk.KVSwap("k", "one", strings.Repeat("x", 999), 0), nil)
	if v, err := sdk.KVGet("k"); err != nil || len(v) != 999 {
		t.Errorf("KVGet = %d bytes, %v; want 999", len(v), err)
	}
	for want := int64(2); want < 7; want += 2 {
		if n, err := sdk.KVAdd("n", 2, 60); n != want || err != nil {
			t.Errorf("KVAdd = %d, %v; want %d", n, err, want)
		}
	}
	h.Forbidden = true
	_, err = sdk.KVGet("k")
	f("forbidden get", err, sdk.ErrForbidden)
	f("forbidden swap", sdk.KVSwap("k", "", "", 0), sdk.ErrForbidden)
	_, err = sdk.KVAdd("n", 1, 0)
	f("forbidden add", err, sdk.ErrForbidden)
}

func TestLog(t *testing.T) {
	h := &sdktest.Host{Level: sdk.Info}
	h.Use(t)
	sdk.Log(sdk.Debug, "quiet")
	sdk.Log(sdk.Warn, "loud")
	if len(h.Lines) != 1 || h.Lines[0] != (sdktest.Line{Level: sdk.Warn, Text: "loud"}) ||
		sdk.Logs(sdk.Debug) || !sdk.Logs(sdk.Info) {
		t.Errorf("lines %v", h.Lines)
	}
	sdk.Metric("m", 1.5)
	sdk.Metric("m", 1)
	if h.Metrics["m"] != 2.5 {
		t.Errorf("metric %v; want 2.5", h.Metrics["m"])
	}
}

// A cost that is no number, as 0/0 of a worker that nothing is known of, is the worst: it does not keep the others out.
// Each is logged.
func TestRankingOfNoNumbers(t *testing.T) {
	h := &sdktest.Host{}
	h.Use(t)
	nan := math.NaN()
	for _, costs := range [][]float64{{nan, 2, 1, 3}, {2, nan, 1}, {nan, nan, nan, nan, nan, 1, nan}, {3, nan, 4, nan, 5, 6, 1}} {
		f := sdktest.NewFrame(len(costs))
		var k sdk.Ranking
		for i := range costs {
			k.Enter(i, &f.Rows[i], costs[i])
		}
		if got := k.Choose(sdk.NewRequest(&f.Header, make([]uint32, len(costs)))).Row(); costs[got] != 1 {
			t.Errorf("of %v the best is row %d", costs, got)
		}
	}
	if len(h.Lines) != 10 || h.Lines[0].Level != sdk.Warn {
		t.Errorf("%d lines %v; want a warning for each cost that is no number", len(h.Lines), h.Lines)
	}
}

func TestRankingIsASort(t *testing.T) {
	f := sdktest.NewFrame(5)
	for i, n := range []uint32{4, 2, 2, 9, 1} {
		f.Rows[i].InFlight, f.Rows[i].Sent = n, uint64(10-i)
	}
	s := byFlight{}
	got := f.Run(t, s)
	if want := []int{2, 1, 0}; got.Row != 4 || !slices.Equal(got.Order, want) {
		t.Errorf("%d, then %v; want 4, then %v", got.Row, got.Order, want)
	}
	var k sdk.Ranking
	if d := k.Choose(nil); d != sdk.Decline {
		t.Errorf("an empty ranking chooses %#x", d)
	}
}

type byFlight struct{}

func (byFlight) Route(r *sdk.Request, workers []sdk.Worker) sdk.Decision {
	var k sdk.Ranking
	for i := range workers {
		k.Enter(i, &workers[i], 0) // all ties: in flight, then sent, then index
	}
	return k.Choose(r)
}

func TestTextsOf11(t *testing.T) {
	long := strings.Repeat("v", 1000)
	h := &sdktest.Host{Caller: "team-a", Headers: map[string]string{"x-tenant": "acme", "x-long": long}}
	h.Use(t)
	name := strings.Repeat("n", 300)
	if sdk.Caller() != "team-a" || sdk.Header("x-tenant") != "acme" || sdk.Header("x-long") != long ||
		sdk.Header("x-none") != "" || sdk.Header("") != "" || sdk.Header(name) != "" {
		t.Errorf("%q, %q, %d bytes", sdk.Caller(), sdk.Header("x-tenant"), len(sdk.Header("x-long")))
	}
}

// Names of labels are asked for once an epoch.
func TestLabels(t *testing.T) {
	h := &sdktest.Host{}
	h.Use(t)
	f := sdktest.NewFrame(2).Label(h, 0, "tier=batch").Label(h, 1, "tier=live").Label(h, 1, "tierless")
	r := sdk.NewRequest(&f.Header, nil)
	check := func(row int, key, want string) {
		t.Helper()
		if got := r.Label(&f.Rows[row], key); got != want {
			t.Errorf("label %q of row %d is %q; want %q", key, row, got, want)
		}
	}
	check(0, "tier", "batch")
	check(1, "tier", "live")
	check(1, "tierless", "")
	check(1, "", "")
	if got := r.Labeled("tier", "live"); got != 2 || r.Labeled("tier", "none") != 0 || r.Labeled("tier", "") != 0 {
		t.Errorf("tier=live is bit %#x; want 2", got)
	}
	h.Labels[1] = "tier=spot"
	check(1, "tier", "live") // as of the epoch
	f.Header.LabelsEpoch++
	check(1, "tier", "spot")
	f.Rows[0].Labels = 1 << 63 // a bit that has no name
	check(0, "tier", "")
}

func TestPrefixes(t *testing.T) {
	h := &sdktest.Host{
		Holders: []sdk.Holder{{Key: 5, Matched: 2, Blocks: 9}, {Key: 6, Matched: 7, Row: -1, TailSecs: -1}},
		Chains:  map[uint64][]int{11: {4, 1}},
		Tiers:   [][]sdk.Tier{{{Kind: abi.TierGPU, Capacity: 100}, {Kind: abi.TierL1}}},
	}
	h.Use(t)
	if best, ok := sdk.PrefixBest(); !ok || best.Key != 6 || best.Row != -1 {
		t.Errorf("best %+v, %v", best, ok)
	}
	if w, ok := sdk.PrefixWorker(0); !ok || w.Blocks != 9 {
		t.Errorf("worker 0: %+v, %v", w, ok)
	}
	if w, ok := sdk.PrefixWorker(2); ok {
		t.Errorf("worker 2: %+v", w)
	}
	if n := sdk.PrefixMatchOf(0, []uint64{11, 12}); n != 2 {
		t.Errorf("matches %d; want both", n)
	}
	if n := sdk.PrefixMatchOf(1, []uint64{12}); n != 0 {
		t.Errorf("matches %d of an unknown chain", n)
	}
	if tiers := sdk.CacheTiers(0); len(tiers) != 2 || tiers[0].Capacity != 100 {
		t.Errorf("tiers %+v", tiers)
	}
	*h = sdktest.Host{}
	if _, ok := sdk.PrefixBest(); ok || len(sdk.CacheTiers(0)) != 0 {
		t.Error("something is known where nothing is")
	}
}

// What a strategy keeps of each worker, and many values of the store at once.
func TestOwnAndManyValues(t *testing.T) {
	h := &sdktest.Host{KV: map[string]string{"a": "one", "c": strings.Repeat("x", 999), "empty": ""}}
	h.Use(t)
	f := func(what string, got, want any) {
		t.Helper()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
	}
	f("at first", sdk.Own(7), 0.)
	f("set", sdk.SetOwn(7, 1e300), nil)
	f("NaN", sdk.SetOwn(7, math.NaN()), sdk.ErrNoNumber)
	f("infinity", sdk.SetOwn(7, math.Inf(-1)), sdk.ErrNoNumber)
	f("read", sdk.Own(7), 1e300)
	frame := sdktest.NewFrame(2)
	h.Own[frame.Rows[1].Key] = .5
	frame.Run(t, rowOne{t})

	var m sdk.KVBatch
	for range 2 {
		v, err := m.Get("a", "b", "c", "empty")
		f("many", v, [][]byte{[]byte("one"), nil, []byte(h.KV["c"]), {}})
		f("no error", err, nil)
	}
	v, err := m.Get()
	f("none", len(v), 0)
	f("without an error", err, nil)
	buffer := make([]byte, 8)
	got, _ := sdk.KVInto("a", buffer)
	f("into", string(got)+string(buffer[:3]), "oneone")
	got, _ = sdk.KVInto("c", buffer)
	f("longer", len(got), 999)
	h.Forbidden = true
	_, err = m.Get("a")
	f("forbidden", err, sdk.ErrForbidden)
	sdk.SetOwn(7, 1)
	f("numbers need no allow", sdk.Own(7), 1.)
}

// rowOne is a strategy that expects the number of row 1.
type rowOne struct{ t *testing.T }

func (s rowOne) Route(_ *sdk.Request, workers []sdk.Worker) sdk.Decision {
	if workers[0].Own != 0 || workers[1].Own != .5 {
		s.t.Errorf("numbers %v and %v; want 0 and .5", workers[0].Own, workers[1].Own)
	}
	return sdk.To(1)
}

// Without a host there is no worker of whom to keep a number.
func TestOwnWithoutAHost(t *testing.T) {
	if err := sdk.SetOwn(7, 1); !errors.Is(err, sdk.ErrNoWorker) || sdk.Own(7) != 0 {
		t.Errorf("%v, %v", err, sdk.Own(7))
	}
}

// Chance: each call has another number, one pick's are the same again, and they are spread evenly.
func TestChance(t *testing.T) {
	frame := sdktest.NewFrame(1)
	counts, trues := [5]int{}, 0
	for i := range 10_000 {
		frame.Header.Random = uint64(i)
		r := sdk.NewRequest(&frame.Header, nil)
		counts[r.Pick(5)]++
		if r.Chance(.3) {
			trues++
		}
		again := sdk.NewRequest(&frame.Header, nil)
		if a, b := again.Pick(1e9), again.Pick(1e9); a == b {
			t.Fatalf("%d twice", a)
		}
		if r.Chance(0) || !r.Chance(1) || r.Pick(1) != 0 || r.Pick(0) != 0 || r.Pick(-3) != 0 {
			t.Fatal("what is sure is not by chance")
		}
	}
	if slices.Min(counts[:]) < 1900 || slices.Max(counts[:]) > 2100 || trues < 2900 || trues > 3100 {
		t.Errorf("picks %v, chances %d", counts, trues)
	}
}

// Places: the hash is the host's, a worker that leaves moves its own alone, and a weight counts.
func TestPlaces(t *testing.T) {
	h := fnv.New64a()
	h.Write([]byte("gpu-1"))
	if got := sdk.Hash("gpu-1"); got != h.Sum64() || sdk.Hash("") != 0 {
		t.Errorf("%#x, %#x", got, sdk.Hash(""))
	}
	frame := sdktest.NewFrame(5)
	frame.Rows[4].Weight = 2
	place := func(i, workers int) (best int) {
		hash := sdk.Hash(strings.Repeat("s", i%7) + string(rune('a'+i%26)) + strconv.Itoa(i))
		for k := range workers {
			if sdk.Place(hash, &frame.Rows[k]) > sdk.Place(hash, &frame.Rows[best]) {
				best = k
			}
		}
		return best
	}
	counts, moved := [5]int{}, 0
	for i := range 12_000 {
		before := place(i, 5)
		counts[before]++
		if after := place(i, 4); after != before && before != 4 {
			moved++
		}
	}
	if slices.Min(counts[:4]) < 1850 || slices.Max(counts[:4]) > 2150 || counts[4] < 3800 || counts[4] > 4200 || moved > 0 {
		t.Errorf("%v, %d moved that had not to", counts, moved)
	}
}
