package tier

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// sureOfNone reports whether a store is certain that there is no value.
func sureOfNone(s *Store, key string) bool {
	_, _, ok, err := s.Find("ns", key)
	return !ok && err == nil
}

// A Redis that has lost its data is not believed while routers put back what they hold.
func TestAFlushedRedisIsNotBelieved(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	const n = 600 // more than a batch
	for i := range n {
		p.a.Set("ns", fmt.Sprint(i), []byte("1"), time.Hour)
	}
	waittest.Until(t, "Redis knows them", func() bool { return p.r.bare.DBSize(context.Background()).Val() >= n })
	waittest.Until(t, "both know its mark", func() bool { return p.a.l2.epoch.forDebt() != "" && p.a.l2.epoch.forDebt() == p.b.l2.epoch.forDebt() })
	p.b.Keep("ns", "0", []byte("newer"), time.Hour) // as if Redis had been silent for b
	p.r.bare.FlushAll(context.Background())
	for i := range n {
		if key := fmt.Sprint(i); sureOfNone(p.b, key) {
			t.Fatalf("b is sure that there is no %s, right after the flush", key)
		}
	}
	waittest.Until(t, "Redis was told again", func() bool { return p.r.bare.DBSize(context.Background()).Val() >= n })
	for i := range n {
		p.agree(fmt.Sprint(i), "1")
	}
	waittest.Until(t, "Redis is believed again", func() bool { return sureOfNone(p.b, "nothing") && sureOfNone(p.a, "nothing") })
}

// The same of one that comes back empty; and what was entered in the silence gives way to what others had held before it.
func TestARedisThatComesBackEmpty(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for i := range 100 {
		p.seed(fmt.Sprint(i), "older")
	}
	waittest.Until(t, "both know its mark", func() bool { return p.a.l2.epoch.forDebt() != "" && p.a.l2.epoch.forDebt() == p.b.l2.epoch.forDebt() })
	p.r.Kill()
	waitOpen(t, p.a)
	waitOpen(t, p.b)
	for i := range 50 {
		p.b.Keep("ns", fmt.Sprint(i), []byte("newer"), time.Hour)
	}
	p.b.Keep("ns", "new", []byte("new"), time.Hour)
	p.r.Start()
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if sureOfNone(p.b, "99") {
			t.Fatal("b is sure that there is none of what a holds")
		}
	}
	for i := range 100 {
		p.agree(fmt.Sprint(i), "older")
	}
	p.agree("new", "new")
}

// After a silence a router does not believe "there is none" until others have had time to send what they did meanwhile.
func TestDoubtAfterASilence(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.stop()
	p.r.Signal(syscall.SIGCONT)
	waitClosed(t, p.b)
	wantSilent(t, p.b, "nothing")
	if _, set := p.b.SetIfAbsent("ns", "k", []byte("1"), time.Hour); !set {
		t.Error("not set")
	}
	p.agree("k", "1") // long before the doubt is over
	waittest.Until(t, "the doubt is over", func() bool { return sureOfNone(p.b, "nothing") })
}

func TestEpoch(t *testing.T) {
	now := time.Now()
	var e epoch
	f := func(what, mark string, after time.Duration, lost bool, told string) {
		t.Helper()
		if got := e.compare(mark, now.Add(after)); got != lost || e.forDebt() != told {
			t.Errorf("%s: lost %v, mark %q; want %v, %q", what, got, e.forDebt(), lost, told)
		}
	}
	f("the first one", "a", 0, false, "a")
	f("the same", "a", 0, false, "a")
	f("another", "b", 0, true, "a")
	f("noticed already", "b", relearn-1, false, "a")
	f("relearnt", "b", relearn, false, "b")
	f("another again", "c", relearn, true, "b")
	e.restoreAgain()
	f("not all was put back", "c", relearn+1, true, "b")
	f("back to the old", "b", relearn+2, false, "b")
	f("and lost again", "d", relearn+2, true, "b")
	e.doubtFrom(time.Now())
	if e.forRequest() != doubted || e.forDebt() != "b" {
		t.Errorf("doubted: known %q, told %q", e.forRequest(), e.forDebt())
	}
	e.doubtFrom(time.Now().Add(-relearn))
	if e.forRequest() != "b" {
		t.Errorf("the doubt is over: %q", e.forRequest())
	}
}
