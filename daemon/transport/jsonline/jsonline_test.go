package jsonline

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

// decoded returns the value that one call of append writes.
func decoded(t *testing.T, write func(l *Line)) any {
	t.Helper()
	var l Line
	l.Open("")
	write(&l)
	l.Close()
	var m map[string]any
	if err := json.Unmarshal(l, &m); err != nil {
		t.Fatalf("%s: %v", l, err)
	}
	return m["v"]
}

// TestLine: what is written is what encoding/json reads.
func TestLine(t *testing.T) {
	for _, v := range []string{"", "plain", `"`, `\`, "a\nb\tc\x00", "\u007f", "ü€\U0001F600", "<&>", "\u2028"} {
		if got := decoded(t, func(l *Line) { l.Text("v", v) }); got != v {
			t.Errorf("%q came as %q", v, got)
		}
	}
	if got := decoded(t, func(l *Line) { l.Text("v", "a\xffb") }); got != "a\uFFFDb" {
		t.Errorf("a text that is no UTF-8 came as %q", got)
	}
	for v, want := range map[float64]float64{0: 0, 1: 1, -1: -1, 0.5: 0.5, -0.25: -0.25, 1e-6: 1e-6, 4e-7: 0, -4e-7: 0, 6e-7: 1e-6,
		0.1234567: 0.123457, 123456.000001: 123456.000001, 1e11: 1e11, 1e12: 1e12, 1e300: 1e300, -1e13: -1e13,
		math.Inf(1): 0, math.Inf(-1): 0, 0.999999: 0.999999, 0.9999999: 1, 10: 10, 100.05: 100.05} {
		if got := decoded(t, func(l *Line) { l.Number("v", v) }); got != want {
			t.Errorf("%v came as %v; want %v", v, got, want)
		}
	}
	if got := decoded(t, func(l *Line) { l.Number("v", math.NaN()) }); got != 0.0 {
		t.Errorf("NaN came as %v", got)
	}
	for _, v := range []int64{0, -1, math.MaxInt32} {
		if got := decoded(t, func(l *Line) { l.Int("v", v) }); got != float64(v) {
			t.Errorf("%d came as %v", v, got)
		}
	}
	if got := decoded(t, func(l *Line) { l.Bool("v", true) }); got != true {
		t.Errorf("true came as %v", got)
	}
	if got := decoded(t, func(l *Line) { l.Base64("v", []byte{0xff, 0xfe, 1}) }); got != "//4B" {
		t.Errorf("bytes came as %v", got)
	}
	at := time.Date(2020, 1, 2, 3, 4, 5, 6000, time.FixedZone("", 3600))
	if got := decoded(t, func(l *Line) { l.Time("v", at) }); got != "2020-01-02T03:04:05.000006+01:00" {
		t.Errorf("a time came as %v", got)
	}
}

func TestNested(t *testing.T) {
	var l Line
	l.Open("")
	l.Int("a", 1)
	l.OpenList("list")
	for range 2 {
		l.Open("")
		l.Text("b", "c")
		l.Bool("d", false)
		l.Close()
	}
	l.CloseList()
	l.OpenList("none")
	l.CloseList()
	l.Open("object")
	l.Close()
	l.Close()
	if want := `{"a":1,"list":[{"b":"c","d":false},{"b":"c","d":false}],"none":[],"object":{}}`; string(l) != want {
		t.Errorf("%s; want %s", l, want)
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\"b")
	f.Fuzz(func(t *testing.T, v string) {
		if got := decoded(t, func(l *Line) { l.Text("v", v) }); got != strings.ToValidUTF8(v, "\uFFFD") && len(got.(string)) < len(v) {
			t.Errorf("%q came as %q", v, got)
		}
	})
}
