package tier

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// dead makes a store whose Redis is not there, with the breaker closed.
func dead(t *testing.T) *Store {
	return notRun(t, Config{Redis: "unix://" + t.TempDir() + "/none", Timeout: patient})
}

// A Redis that did not answer is not asked again in the same call, and never about what it is owed.
func TestWhoIsAsked(t *testing.T) {
	s := dead(t)
	f := func(what string, want uint64, call func()) {
		t.Helper()
		before := s.Stats().L2.Calls
		call()
		if n := s.Stats().L2.Calls - before; n != want {
			t.Errorf("%s: %d calls; want %d", what, n, want)
		}
	}
	f("SetIfAbsent", 1, func() { s.SetIfAbsent("ns", "k", []byte("1"), time.Hour) })
	f("Touch of what is owed", 0, func() { s.Touch("ns", "k", time.Hour) })
	f("Get of what is owed", 0, func() { want(t, s, "k", "1") })
	f("CompareAndSwap of what is owed", 0, func() { s.CompareAndSwap("ns", "k", []byte("1"), []byte("2"), time.Hour) })
	f("CompareAndSwap", 1, func() { s.CompareAndSwap("ns", "new", nil, []byte("2"), time.Hour) })
	f("Add", 1, func() { s.Add("ns", "n", 1, time.Hour) })
	f("Keep", 0, func() { s.Keep("ns", "kept", []byte("1"), time.Hour) })
}

// What was deleted here is gone, whatever Redis has.
func TestADeletionNeedsNoRedis(t *testing.T) {
	s := dead(t)
	s.Delete("ns", "k")
	if _, _, ok, err := s.Find("ns", "k"); ok || err != nil {
		t.Errorf("%v, %v; want none, for sure", ok, err)
	}
	s.Drop("ns", "other", []byte("1"))
	if _, _, ok, err := s.Find("ns", "other"); ok || !errors.Is(err, ErrSilent) {
		t.Errorf("%v, %v; want ErrSilent: Redis may have another", ok, err)
	}
}

// A change that Redis is not given at once wakes the healer, unless Redis is lost: then its pulse will do.
func TestKeepWakesTheHealer(t *testing.T) {
	s := dead(t)
	s.Keep("ns", "k", []byte("1"), time.Hour)
	if len(s.wake) != 1 {
		t.Fatal("the healer sleeps")
	}
	<-s.wake
	s.Keep("ns", "k", []byte("2"), time.Hour) // changes nothing
	s.l2.breaker.Trip(time.Now())
	s.Keep("ns", "other", []byte("1"), time.Hour)
	if len(s.wake) != 0 {
		t.Error("the healer was woken for nothing")
	}
}

// Of many who find a value stale one asks.
func TestOneAsks(t *testing.T) {
	m, k := newMemory(Config{MaxBytes: 1 << 20}), id{"ns", "k"}
	m.put(k, write{value: []byte("1"), expires: never}, 0)
	const now, stale = int64(time.Hour), int64(time.Minute)
	if first, second := m.read(k, now, stale), m.read(k, now, stale); first.checked >= stale || second.checked != now {
		t.Errorf("checked %d, then %d", first.checked, second.checked)
	}
}

func TestCountersKeepTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memoryOnly(t, 0)
		s.Add("ns", "n", 1, time.Minute)
		s.Add("ns", "n", 1, time.Hour)
		if v, life, _, _ := s.Find("ns", "n"); string(v) != "2" || life != time.Minute {
			t.Errorf("%s for %v; want 2 for a minute", v, life)
		}
		time.Sleep(time.Minute)
		wantNone(t, s, "n")
	})
}

// Find returns what is left of a life: here, after an answer of Redis, and of what does not end.
func TestLife(t *testing.T) {
	r := startRedis(t)
	a := notRun(t, Config{Redis: r.URL(), Timeout: patient})
	b := notRun(t, Config{Redis: r.URL(), Timeout: patient})
	a.Set("ns", "hour", []byte("1"), time.Hour)
	a.Set("ns", "ever", []byte("1"), 0)
	for _, s := range []*Store{a, b, b} { // b asks Redis first, then knows
		if _, life, ok, err := s.Find("ns", "hour"); !ok || err != nil || life > time.Hour || life < 59*time.Minute {
			t.Errorf("%v, %v, %v; want nearly an hour", life, ok, err)
		}
		if _, life, ok, err := s.Find("ns", "ever"); !ok || err != nil || life != 0 {
			t.Errorf("%v, %v, %v; want no end", life, ok, err)
		}
	}
}

// A date is by the wall clock as it is now, and a life is by no wall clock at all: somebody has set it since the start.
func TestAClockThatIsSet(t *testing.T) {
	for _, by := range []time.Duration{-time.Hour, time.Hour} {
		now := time.Now()
		c := clock{start: now.Add(-time.Minute), read: time.Now}
		*(*uint64)(unsafe.Pointer(&c.start)) -= uint64(int64(by/time.Second)) << 30 // seconds of the wall clock
		if got := now.Unix() - c.start.Unix(); now.Sub(c.start) != time.Minute || got != int64(by/time.Second)+60 {
			t.Fatalf("a Time is not made as this test thinks: %v", c.start)
		}
		if got := time.Duration(c.now()).Round(time.Second); got != time.Minute {
			t.Errorf("set by %v: the store is %v old", by, got)
		}
		date := c.date(int64(2 * time.Minute))
		if wall, steady := date.Unix()-now.Unix(), date.Sub(now).Round(time.Second); wall < 60 || wall > 62 || steady != time.Minute {
			t.Errorf("set by %v: in %v, and in %d s by the date; want in a minute", by, steady, wall)
		}
	}
	var c clock
	if !c.date(never).IsZero() {
		t.Error("never has a date")
	}
}

// Load stops where memory is full.
func TestLoadOfMoreThanFits(t *testing.T) {
	r := startRedis(t)
	first := notRun(t, Config{Redis: r.URL(), Timeout: patient})
	const n, fits = 6000, 500
	for i := range n {
		first.Set("ns", fmt.Sprint(i), []byte(strings.Repeat("x", 100)), time.Hour)
	}
	second := notRun(t, Config{Redis: r.URL(), Timeout: patient, MaxBytes: 2 * fits * (overhead + 104)})
	if got, err := second.Load(t.Context()); got < fits || got > n/2 || err != nil {
		t.Errorf("%d values were read, %v; want a few pages of %d", got, err, n)
	}
}

func TestValuesOfAPage(t *testing.T) {
	f := func(text string, ttl time.Duration, value string, life time.Duration, ok bool) {
		t.Helper()
		v, is := valueOf(text, ttl)
		if is != ok || ok && (v.kind != kindValue || string(v.value) != value || v.ttl != life) {
			t.Errorf("%.10q, %v: %+v, %v", text, ttl, v, is)
		}
	}
	f("vx", time.Hour, "x", time.Hour, true)
	f("v", time.Hour, "", time.Hour, true)
	f("vx", -1, "x", 0, true)               // it does not end
	f("vx", 0, "x", time.Millisecond, true) // it ends within a millisecond
	f("vx", -2, "", 0, false)               // gone
	f("", -2, "", 0, false)
	f("t", time.Hour, "", 0, false)
	f("other", time.Hour, "", 0, false)
	f("v"+strings.Repeat("x", ahead-1), time.Hour, strings.Repeat("x", ahead-1), time.Hour, true)
	f("v"+strings.Repeat("x", ahead), time.Hour, "", 0, false)
}
