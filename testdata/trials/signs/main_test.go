package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

func TestWhole(t *testing.T) {
	f := func(body string, stream, want bool) {
		t.Helper()
		if got := whole(body, stream); got != want {
			t.Errorf("%q, stream %v: got %v want %v", body, stream, got, want)
		}
	}
	f(`{"choices":[{"finish_reason":"stop"}]}`, false, true)
	f(`{"choices":[{"finish_reason":"abort"}]}`, false, false)
	f("", false, false)
	f(`data: {"finish_reason":"stop"}`+"\n\ndata: [DONE]\n\n", true, true)
	f(`data: {"finish_reason":"stop"}`+"\n\n", true, false)
	f("data: [DONE]\n\n", true, false)
}

// TestShort: only places that stood idle at the first engine while all others were busy explain a loss, and no more than
// was asked for beyond what the others can do while clients wait.
func TestShort(t *testing.T) {
	const d = 400 * time.Second // the others can do 11,760 answers in it and the patience after it
	none := make([]time.Duration, engines)
	f := func(first, others time.Duration, rate float64, want int64) {
		t.Helper()
		is := []time.Duration{first}
		for range engines - 1 {
			is = append(is, others)
		}
		if got := short(none, is, rate, d); got != want {
			t.Errorf("first busy for %v, each other one for %v, %v a second: got %d want %d", first, others, rate, got, want)
		}
	}
	f(0, places*d, 30, 240)  // 12,000 asked for
	f(0, places*d, 40, 1600) // no more than the first's places
	f(0, places*d/2, 30, 0)  // the others had time
	f(0, places*d, 29, 0)    // the queues hold it
	f(places*d, places*d, 40, 0)
}

// TestSignsAreSeen: behind nothing, clients of the engine meet the sign, and are well before and after it.
func TestSignsAreSeen(t *testing.T) {
	f := func(name string, want func(tally) bool) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := newSite(signNamed(t, name).gated)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if got := press(t.Context(), s.door(), 3, time.Second); got.bad() != 0 {
				t.Errorf("well: %+v", got)
			}
			s.play(signNamed(t, name))
			time.AfterFunc(1500*time.Millisecond, s.recover)
			if got := press(t.Context(), s.door(), 8, time.Second); !want(got) {
				t.Errorf("%+v", got)
			}
			time.Sleep(1200 * time.Millisecond)
			if got := press(t.Context(), s.door(), 3, time.Second); got.bad() != 0 {
				t.Errorf("well again: %+v", got)
			}
		})
	}
	f("401", func(t tally) bool { return t.Refused == t.Sent })
	f("503-some", func(t tally) bool { return t.Refused >= 1 && t.Refused < t.Sent })
	f("page", func(t tally) bool { return t.Cut == t.Sent })
	f("abort", func(t tally) bool { return t.Cut >= 1 && t.Cut < t.Sent })
	f("cut", func(t tally) bool { return t.Cut >= 1 && t.Cut < t.Sent })
	f("reset", func(t tally) bool { return t.Failed == t.Sent })
	f("killed", func(t tally) bool { return t.Failed == t.Sent })
	f("hang", func(t tally) bool { return t.bad() == 0 && t.Most > 1.4 })
	f("accept-full", func(t tally) bool { return t.bad() == 0 && t.Most > 1.4 })
	f("health-503", func(t tally) bool { return t.bad() == 0 && t.Most < 3 })
}

func signNamed(t *testing.T, name string) *sign {
	for i := range signs {
		if signs[i].name == name {
			return &signs[i]
		}
	}
	t.Fatalf("no sign %q", name)
	return nil
}

func TestNamesTellSignsApart(t *testing.T) {
	seen := map[string]bool{}
	for _, a := range signs {
		if a.name == "" || seen[a.name] || a.post == nil && a.health == nil && a.begin == nil && !a.silent {
			t.Errorf("sign %q", a.name)
		}
		seen[a.name] = true
	}
}

// TestHealthAndPages: what an engine says beside its answers.
func TestHealthAndPages(t *testing.T) {
	s, err := newSite(false)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := func(path string, status int, word string) {
		t.Helper()
		if a := wire.GetFrom(s.addr, path); a.Status != status || !strings.Contains(string(a.Body), word) {
			t.Errorf("%s: %d %s; want %d and %q", path, a.Status, a.Body, status, word)
		}
	}
	f("/health", 200, "")
	f("/metrics", 200, `sleep_state="awake"} 1.0`)
	f("/is_paused", 200, "false")
	s.play(signNamed(t, "sleep"))
	f("/metrics", 200, `sleep_state="weights_offloaded"} 1.0`)
	s.recover()
	s.play(signNamed(t, "pause"))
	f("/is_paused", 200, "true")
	s.recover()
	s.play(signNamed(t, "dead"))
	f("/health", 503, "")
	s.recover()
}

// TestTrial plays a sign at the first engine through a router that is none: a relay to that engine. What the engine cut
// is explained.
func TestTrial(t *testing.T) {
	got, err := behind(context.Background(), signNamed(t, "cut"), 3, time.Second, func(doors []string) (*rig.Proc, error) {
		return rig.Start(t.TempDir(), "idle", doors[0], "sleep", "60")
	})
	if err != nil || got.Sent != 24 || got.Cut == 0 || got.bad() != got.Explained {
		t.Errorf("%+v, %v; want 24 sent, and as many cut as explained", got, err)
	}
}
