package operator

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestTrend: a rise begins once, ends a minute after its last step, and can begin again.
func TestTrend(t *testing.T) {
	var x trends
	at := time.Now()
	step := func(wait time.Duration, value uint64, begins, ends bool) {
		t.Helper()
		at = at.Add(wait)
		was, b, e := x.see("c", value, at)
		if b != begins || e != ends {
			t.Errorf("at %d: begins %v, ends %v", value, b, e)
		}
		if now, rising := x.of("c"); e && (rising || was.began.IsZero() || now.grown() != was.grown()) {
			t.Errorf("it ends, rising %v, was %+v", rising, was)
		}
	}
	step(0, 0, false, false)
	step(time.Second, 5, true, false)
	step(30*time.Second, 9, false, false)
	step(59*time.Second, 9, false, false)
	if now, rising := x.of("c"); !rising || now.grown() != 9 {
		t.Errorf("%+v, rising %v", now, rising)
	}
	step(time.Second, 9, false, true)
	step(time.Hour, 9, false, false)
	step(time.Second, 10, true, false)
	if now, _ := x.of("c"); now.grown() != 1 {
		t.Errorf("the next rise has %d", now.grown())
	}
	x.see(shedsOf+"p", 0, at)
	x.see(shedsOf+"p", 1, at)
	x.see(shedsOf+"q", 1, at)
	x.keep(map[string]bool{shedsOf + "q": true})
	if len(x.all) != 2 || x.all[shedsOf+"q"] == nil {
		t.Errorf("%v are kept; want c and the pool that is there", x.all)
	}
}

// A pool that refuses requests has one line when that begins, and one when it is over, with how many and for how long.
func TestShedLines(t *testing.T) {
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(&lines, nil))
	var x trends
	start := time.Now()
	for second := range 200 {
		refused := uint64(max(0, min(second-10, 30))) // from 11 to 40
		x.shed("p", refused, start.Add(time.Duration(second)*time.Second), log)
		if n := strings.Count(lines.String(), "\n"); second < 100 && n != min(1, int(refused)) {
			t.Fatalf("after %d s %d lines:\n%s", second, n, &lines)
		}
	}
	_, ended, _ := strings.Cut(lines.String(), "\n")
	const want = `level=INFO msg="the pool has refused no request for a minute" pool=p refused=30 for=29s` + "\n"
	if !strings.HasSuffix(ended, want) || strings.Count(ended, "\n") != 1 {
		t.Errorf("at its end the log says %q; want %q", ended, want)
	}
}
