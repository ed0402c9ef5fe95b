package prefixaware

import (
	"strings"
	"testing"

	"github.com/warmpath/warmpath/sdk/sdktest"
)

func configured(t *testing.T, options map[string]string) *strategy {
	t.Helper()
	s := new(strategy)
	if err := sdktest.Configure(s, options); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOptionsOutOfRange(t *testing.T) {
	for _, o := range []map[string]string{
		{"prefix_length": "1023"}, {"prefix_length": "65537"},
		{"concurrency_threshold": "1025"}, {"concurrency_threshold": "-1"},
	} {
		if err := sdktest.Configure(new(strategy), o); err == nil || !strings.Contains(err.Error(), "out of range") {
			t.Errorf("%v: %v", o, err)
		}
	}
}

func TestConcurrencyThreshold(t *testing.T) {
	f := func(what string, want int, inFlight ...uint32) {
		t.Helper()
		fr := sdktest.NewFrame(len(inFlight)).Prompt(8000).Hold(0, 7900)
		for i, n := range inFlight {
			fr.Rows[i].InFlight = n
		}
		if got := fr.Run(t, configured(t, map[string]string{"concurrency_threshold": "4"})); got.Row != want {
			t.Errorf("%s: row %d; want %d", what, got.Row, want)
		}
	}
	f("below it the cache decides", 0, 3, 3, 3)
	f("at it the least busy gets the request", 2, 4, 3, 2)
	f("all are at it: the cache again", 0, 4, 5, 6)
	fr := sdktest.NewFrame(2)
	fr.Rows[0].InFlight, fr.Rows[1].InFlight, fr.Rows[1].Slow, fr.Rows[0].Lately = 5, 5, 8, 9
	if got := fr.Run(t, configured(t, map[string]string{"concurrency_threshold": "4"})); got.Row != 0 {
		t.Errorf("all are at it, one is eight times slower: row %d; want 0", got.Row)
	}
}

// A worker at the threshold must not change how the others compare: at a mean wait of weeks a cached token would be worth
// any wait.
func TestThresholdLeavesTheOthersAlone(t *testing.T) {
	fr := sdktest.NewFrame(3).Prompt(4000).Hold(0, 3900)
	fr.Header.Lambda, fr.Rows[0].Wait, fr.Rows[2].InFlight = 1, 60, 4
	if got := fr.Run(t, configured(t, map[string]string{"concurrency_threshold": "4"})); got.Row != 1 {
		t.Errorf("row %d; want the idle one, 1", got.Row)
	}
}

// With a beginning of 1,024 bytes two workers that hold more than that are alike, however much more one holds.
func TestPrefixLength(t *testing.T) {
	frame := func() *sdktest.Frame {
		fr := sdktest.NewFrame(2).Prompt(20_000).Hold(0, 2000).Hold(1, 19_000)
		fr.Rows[1].InFlight = 1
		return fr
	}
	if got := frame().Run(t, New()); got.Row != 1 {
		t.Errorf("without it: row %d", got.Row)
	}
	fr := frame()
	before := fr.Rows[1].GPU
	if got := fr.Run(t, configured(t, map[string]string{"prefix_length": "1024"})); got.Row != 0 {
		t.Errorf("with it: row %d", got.Row)
	}
	if fr.Rows[1].GPU != before {
		t.Error("the frame was changed")
	}
}
