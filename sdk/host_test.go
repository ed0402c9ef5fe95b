package sdk_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/warmpath/warmpath/sdk"
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
