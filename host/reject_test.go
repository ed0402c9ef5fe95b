package host

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/warmpath/warmpath/sdk/abi"
)

// What a strategy writes for a rejection reaches the result within its limits, whatever the module writes.
func TestRejectSays(t *testing.T) {
	s := load(t, newHost(t, Config{}), wat(t, "reject_says"), Options{})
	f := func(status, seconds, ptr, n uint32, want Rejection) {
		t.Helper()
		fr := frame(4, 2)
		fr.Header.Seq, fr.Header.MaxTokens, fr.Header.Priority, fr.Header.PromptTokens = uint64(status), seconds, int32(ptr), n
		r := s.Pick(fr)
		if r.Fallback != "" || r.Reject == nil || *r.Reject != want || r.Row != 2 || r.Reason != 300 {
			t.Errorf("%d, %d, %d, %d: %+v, %+v; want %+v", status, seconds, ptr, n, r, r.Reject, want)
		}
	}
	const text = 16384
	f(403, 7, text, 2, Rejection{403, "no", 7 * time.Second})
	f(503, 0, text, 14, Rejection{503, "no more today", 0})
	f(599, 1, text, 0, Rejection{599, "", time.Second})
	f(0, 0, 0, 0, Rejection{429, "", 0})
	f(200, 0, 0, 0, Rejection{429, "", 0})
	f(600, 0, text, 2, Rejection{429, "no", 0})
	f(400, 0, 1<<31-1, 1<<31-1, Rejection{400, "", 0}) // outside of its memory
	f(400, 1<<32-1, text, 1<<31-1, Rejection{400, "no more today", (1<<32 - 1) * time.Second})
	if got := s.ReasonName(300); got != "quota" {
		t.Errorf("reason 300 is %q; want quota", got)
	}
	if got := s.ReasonName(301); got != "" {
		t.Errorf("reason 301 is %q; want none", got)
	}
}

func TestOneLine(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		if got := oneLine(s); got != want {
			t.Errorf("oneLine(%q) = %q; want %q", s, got, want)
		}
	}
	f("", "")
	f(" a\r\nb\x00 ", "a  b")
	f("naïve \u2028 line", "naïve   line")
	f("cut \xe2\x82", "cut")
	f(strings.Repeat("é", 200), strings.Repeat("é", abi.MaxText/2))
	f("x"+strings.Repeat("é", 200), "x"+strings.Repeat("é", abi.MaxText/2-1))
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\nb\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := oneLine(s)
		if len(got) > abi.MaxText || !utf8.ValidString(got) || strings.ContainsAny(got, "\r\n\x00") {
			t.Errorf("oneLine(%q) = %q", s, got)
		}
	})
}
