package host

import (
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
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

// With on_failure = "reject" each way to the fallback refuses the request: every reason, and no other code chooses a
// row in a module's place.
func TestEveryFallbackRejects(t *testing.T) {
	s := load(t, newHost(t, Config{}), wat(t, "trap"), Options{Reject: true})
	for why := trap; why < reasons; why++ {
		r := s.fallback(frame(3, 1), why)
		if r.Fallback != reasonNames[why] || r.Fallback == "" || r.Reject == nil || r.Reject.Status != 503 {
			t.Errorf("%d: %+v; want 503", why, r)
		}
	}
	if r := s.Pick(&Frame{}); r.Row != -1 || len(r.Order) != 0 || r.Reject == nil || r.Fallback != "no_rows" {
		t.Errorf("without rows: %+v", r)
	}
	held := Result{Row: 1, Hold: time.Second, Reason: 7, Fuel: 9}
	r := s.EndHold(frame(3, 1), held)
	if r.Reject == nil || r.Hold != 0 || r.Fallback != "hold" || r.Reason != 7 || r.Fuel != 9 {
		t.Errorf("after a hold: %+v; want 503", r)
	}
	if n := s.Stats().Fallbacks["hold"]; n != 2 {
		t.Errorf("%d holds are counted; want 2", n)
	}
}

// With on_failure = "reject" a client whose requests make the module fail is set aside alone. Without it the strategy
// is, as the fallback serves everybody meanwhile.
func TestFailuresCountByCaller(t *testing.T) {
	for _, rejects := range []bool{true, false} {
		var log strings.Builder
		h := newHost(t, Config{Slots: 2, QuarantineFor: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))})
		s := load(t, h, wat(t, "trap"), Options{Reject: rejects})
		bad, good := frame(8, 5), frame(2, 1)
		bad.Caller, good.Caller = "bad", "good"
		for range 5 {
			waittest.Until(t, "an instance to fail", func() bool { return s.Pick(bad).Fallback == "trap" })
		}
		if r := s.Pick(bad); r.Fallback != "quarantined" || (r.Reject != nil) != rejects {
			t.Errorf("rejects %v: the sixth of the bad client: %+v", rejects, r)
		}
		var r Result
		waittest.Until(t, "an instance", func() bool { r = s.Pick(good); return r.Fallback != "busy" })
		if want := map[bool]string{false: "quarantined"}[rejects]; r.Fallback != want {
			t.Errorf("rejects %v: the good client: %+v; want %q", rejects, r, want)
		}
		if !s.Stats().Quarantined {
			t.Errorf("rejects %v: nothing says that it is set aside", rejects)
		}
		if strings.Contains(log.String(), "caller=bad") != rejects {
			t.Errorf("rejects %v: the log: %s", rejects, log.String())
		}
	}
}

// With on_failure = "reject" calls that concern no request set nothing aside, however many of them fail: no caller's
// next request would end that.
func TestUpkeepThatFailsRejectsNobody(t *testing.T) {
	s := load(t, newHost(t, Config{Slots: 2, QuarantineAfter: 2, QuarantineFor: time.Hour}), wat(t, "maint"), Options{Reject: true})
	f := frame(4, 1)
	waittest.Until(t, "replaced instances", func() bool {
		s.Pick(f)
		return s.Stats().Discarded > 4
	})
	waittest.Until(t, "both instances", func() bool { return s.Stats().Instances == 2 })
	if st := s.Stats(); st.Quarantined || st.LastError == "" || s.Pick(f).Reject != nil {
		t.Errorf("%+v; want it in service", st)
	}
}
