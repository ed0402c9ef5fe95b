package session

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func TestBindingLastsItsTTL(t *testing.T) {
	s := New(time.Minute, 10)
	now := time.Unix(1000, 0)
	s.Bind("a", "w1", now)
	f := func(after time.Duration, want string) {
		t.Helper()
		now = now.Add(after)
		if got := s.Worker("a", now); got != want {
			t.Fatalf("after %v: worker %q; want %q", after, got, want)
		}
	}
	f(59*time.Second, "w1")
	f(59*time.Second, "w1") // the use before refreshed it
	f(time.Minute, "")
	f(0, "")
	if st := s.Stats(); st.Live != 0 || st.Expired != 1 || st.Bound != 1 {
		t.Fatalf("stats %+v", st)
	}
}

func TestTheFullTableForgetsTheLeastUsed(t *testing.T) {
	s := New(time.Hour, 2)
	now := time.Unix(1000, 0)
	s.Bind("a", "w1", now)
	s.Bind("b", "w2", now)
	s.Worker("a", now)
	s.Bind("c", "w3", now)
	if a, b, c := s.Worker("a", now), s.Worker("b", now), s.Worker("c", now); a != "w1" || b != "" || c != "w3" {
		t.Fatalf("got %q %q %q; want w1, none, w3", a, b, c)
	}
	s.Bind("a", "w9", now)
	if st := s.Stats(); st.Live != 2 || st.Forced != 1 || st.Rebound != 1 {
		t.Fatalf("stats %+v", st)
	}
}

func TestBindAlsoDropsWhatIsOver(t *testing.T) {
	s := New(time.Minute, 100)
	now := time.Unix(1000, 0)
	for i := range 3 {
		s.Bind(fmt.Sprint(i), "w", now)
	}
	s.Bind("new", "w", now.Add(time.Hour))
	if st := s.Stats(); st.Live != 1 || st.Expired != 3 {
		t.Fatalf("stats %+v; want one live, three expired", st)
	}
}

func TestHammer(t *testing.T) {
	s := New(time.Minute, 50)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 5000 {
				k := fmt.Sprint((i * (g + 1)) % 97)
				s.Bind(k, "w", time.Unix(int64(i), 0))
				s.Worker(k, time.Unix(int64(i), 0))
			}
		})
	}
	wg.Wait()
	if n := s.Stats().Live; n > 50 {
		t.Fatalf("%d live; bound is 50", n)
	}
}
