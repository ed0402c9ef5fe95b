package tier

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// pair is two routers' stores on one Redis, under the default limits.
type pair struct {
	t    *testing.T
	r    *server
	a, b *Store
}

func newPair(t *testing.T) *pair {
	r := startRedis(t)
	p := &pair{t: t, r: r}
	p.a, _ = open(t, Config{Redis: r.URL()})
	p.b, _ = open(t, Config{Redis: r.URL()})
	return p
}

// stop stops Redis and waits until both know.
func (p *pair) stop() {
	p.t.Helper()
	p.r.Signal(syscall.SIGSTOP)
	waitOpen(p.t, p.a)
	waitOpen(p.t, p.b)
}

// resume continues Redis and waits until both have sent it all.
func (p *pair) resume() {
	p.t.Helper()
	p.r.Signal(syscall.SIGCONT)
	for _, s := range []*Store{p.a, p.b} {
		waitClosed(p.t, s)
		waittest.Until(p.t, "nothing is owed", func() bool { return s.Stats().L2.Owing == 0 })
	}
}

// agree waits until both routers and Redis itself have the value; "" = none.
func (p *pair) agree(key, value string) {
	p.t.Helper()
	want := "v" + value
	if value == "" {
		want = "t"
	}
	var raw string
	waittest.Until(p.t, fmt.Sprintf("%s is %q everywhere", key, value), func() bool {
		va, _, oka, erra := p.a.Find("ns", key)
		vb, _, okb, errb := p.b.Find("ns", key)
		raw = p.r.bare.Get(context.Background(), p.a.l2.keys.key(id{"ns", key})).Val()
		return erra == nil && errb == nil && string(va) == value && string(vb) == value && oka == okb && raw == want
	})
}

// seed stores a value through a, and waits until Redis has it.
func (p *pair) seed(key, value string) {
	p.t.Helper()
	if _, set := p.a.SetIfAbsent("ns", key, []byte(value), time.Hour); !set {
		p.t.Fatalf("%s stands already", key)
	}
	waittest.Until(p.t, "Redis has "+key, func() bool {
		return p.r.bare.Exists(context.Background(), p.a.l2.keys.key(id{"ns", key})).Val() == 1
	})
}

func wantSilent(t *testing.T, s *Store, key string) {
	t.Helper()
	if v, _, ok, err := s.Find("ns", key); ok || !errors.Is(err, ErrSilent) {
		t.Errorf("Find(%q) = %q, %v, %v; want ErrSilent", key, v, ok, err)
	}
}

// "Redis did not answer" is no "there is none".
func TestASilentRedisIsNotAnEmptyOne(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.seed("held", "1")
	waittest.Until(t, "there is none, for sure", func() bool { _, _, ok, err := p.b.Find("ns", "nothing"); return !ok && err == nil })
	before := p.b.Stats().Silent // on a machine that is late there are some already
	p.r.Signal(syscall.SIGSTOP)
	wantSilent(t, p.b, "held") // within 5 ms, the breaker still closed
	wantSilent(t, p.b, "nothing")
	waitOpen(t, p.b)
	waitOpen(t, p.a)
	wantSilent(t, p.b, "held")
	if v, _, ok, err := p.a.Find("ns", "held"); string(v) != "1" || !ok || err != nil {
		t.Errorf("the router that holds it: %q, %v, %v", v, ok, err)
	}
	if !p.a.Lost() || p.a.Stats().Silent != 0 || p.b.Stats().Silent != before+3 {
		t.Errorf("lost %v, %d and %d silent answers", p.a.Lost(), p.a.Stats().Silent, p.b.Stats().Silent-before)
	}
	alone, _ := open(t, Config{})
	if _, _, ok, err := alone.Find("ns", "x"); ok || err != nil || alone.Lost() {
		t.Errorf("without a Redis: %v, %v", ok, err)
	}
	p.resume()
	p.agree("held", "1")
	waittest.Until(t, "there is none, for sure again", func() bool { _, _, ok, err := p.b.Find("ns", "nothing"); return !ok && err == nil })
}

// What is entered in a silence gives way to what Redis holds, however it was changed meanwhile.
func TestTheOlderValueWins(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.seed("last", "older")
	keys := []string{"kept", "touched", "replaced", "dropped", "kept again", "set if absent"}
	for _, key := range keys {
		p.seed(key, "older")
	}
	p.stop()
	for _, key := range keys {
		wantSilent(t, p.b, key)
		if now, set := p.b.Keep("ns", key, []byte("newer"), time.Hour); !set || string(now) != "newer" {
			t.Fatalf("Keep: %q, %v", now, set)
		}
		want(t, p.b, key, "newer")
	}
	if now, set := p.b.Keep("ns", "kept", []byte("third"), time.Hour); set || string(now) != "newer" {
		t.Errorf("a second Keep: %q, %v", now, set)
	}
	p.b.Touch("ns", "touched", time.Hour)
	if !p.b.Replace("ns", "replaced", []byte("newer"), []byte("newest"), time.Hour) {
		t.Error("Replace failed in a silence")
	}
	p.b.Drop("ns", "dropped", []byte("newer"))
	wantSilent(t, p.b, "dropped") // it may stand in Redis
	p.b.Drop("ns", "kept again", []byte("newer"))
	p.b.Keep("ns", "kept again", []byte("newest"), time.Hour)
	p.b.SetIfAbsent("ns", "absent", []byte("mine"), time.Hour)
	p.b.Keep("ns", "last", []byte("newer"), time.Hour)
	p.resume()
	want(t, p.b, "last", "older") // at once, not when it is asked for the next time
	for _, key := range keys {
		p.agree(key, "older")
	}
	p.agree("absent", "mine")
}

// What both routers held before a silence and changed in it ends alike.
func TestChangesOfWhatBothHold(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	for _, key := range []string{"one moves", "both move", "one ends", "one drops", "one drops what moves", "forced"} {
		p.seed(key, "w1")
		waittest.Until(t, "b holds it", func() bool { v, _ := p.b.Get("ns", key); return string(v) == "w1" })
	}
	p.stop()
	w1, w2, w3 := []byte("w1"), []byte("w2"), []byte("w3")
	f := func(ok bool) {
		t.Helper()
		if !ok {
			t.Error("a change failed in a silence")
		}
	}
	f(p.a.Replace("ns", "one moves", w1, w2, time.Hour))
	f(!p.a.Replace("ns", "one moves", w1, w3, time.Hour))
	f(p.a.Replace("ns", "one moves", w2, w3, time.Hour)) // Redis has w1: that is what it is asked to replace
	f(p.a.Replace("ns", "both move", w1, w2, time.Hour))
	f(p.b.Replace("ns", "both move", w1, w3, time.Hour))
	f(p.a.CompareAndSwap("ns", "one ends", w1, []byte("ended"), time.Hour))
	f(p.b.Replace("ns", "one ends", w1, w2, time.Hour))
	p.a.Drop("ns", "one drops", w1)
	p.a.Drop("ns", "one drops what moves", w2) // not what stands there
	f(p.a.Replace("ns", "one drops what moves", w1, w2, time.Hour))
	p.a.Drop("ns", "one drops what moves", w2)
	f(p.a.CompareAndSwap("ns", "forced", w1, w2, time.Hour))
	f(p.a.Replace("ns", "forced", w2, w3, time.Hour))
	p.resume()
	p.agree("one moves", "w3")
	p.agree("one ends", "ended")
	p.agree("one drops", "")
	p.agree("one drops what moves", "")
	p.agree("forced", "w3")
	v, _ := p.a.Get("ns", "both move")
	if s := string(v); s != "w2" && s != "w3" {
		t.Errorf("both moved it: %q", s)
	}
	p.agree("both move", string(v))
}

// Drop takes away nothing but what its caller saw.
func TestDropOfAnotherValue(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.seed("k", "1")
	p.b.Drop("ns", "k", []byte("2")) // b has not seen it
	p.agree("k", "1")
	p.b.Drop("ns", "k", []byte("2")) // b has
	p.agree("k", "1")
	p.a.Drop("ns", "k", []byte("1"))
	p.agree("k", "")
	p.a.Drop("ns", "never there", []byte("1"))
	waittest.Until(t, "all is told", func() bool { return p.a.Stats().L2.Owing == 0 })
	if n := p.r.bare.Exists(context.Background(), p.a.l2.keys.key(id{"ns", "never there"})).Val(); n != 0 {
		t.Error("it left something in Redis")
	}
	alone, _ := open(t, Config{})
	alone.Set("ns", "k", []byte("1"), 0)
	alone.Drop("ns", "k", []byte("2"))
	want(t, alone, "k", "1")
	alone.Drop("ns", "k", []byte("1"))
	wantNone(t, alone, "k")
}

// A longer life that is sent late shortens none.
func TestALateTouchShortensNothing(t *testing.T) {
	t.Parallel()
	p := newPair(t)
	p.seed("k", "1")
	p.seed("longer", "1")
	p.stop()
	p.a.Touch("ns", "k", time.Minute)
	p.a.Touch("ns", "longer", 3*time.Hour)
	p.resume()
	left := func(key string) time.Duration {
		return p.r.bare.PTTL(context.Background(), p.a.l2.keys.key(id{"ns", key})).Val()
	}
	if d := left("k"); d < 50*time.Minute {
		t.Errorf("k lives for %v; want what was left of its hour", d)
	}
	if d := left("longer"); d < 2*time.Hour {
		t.Errorf("longer lives for %v; want nearly 3 h", d)
	}
}

// A change that Redis was late for is sent at once, and Settle waits for it.
func TestSettle(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	var delay atomic.Int64
	late, _ := open(t, Config{Redis: "redis://" + proxy(t, listen(t), r.Socket(), &delay)})
	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	waittest.Until(t, "it is there", func() bool { _, _, _, err := late.Find("ns", "x"); return err == nil })
	for i := range 20 {
		key := fmt.Sprint(i)
		delay.Store(int64(8 * time.Millisecond)) // one call is late
		if _, set := late.SetIfAbsent("ns", key, []byte("1"), time.Hour); !set {
			t.Fatal("not set")
		}
		time.AfterFunc(20*time.Millisecond, func() { delay.Store(0) })
		late.Settle("ns", key)
		want(t, other, key, "1")
	}
	r.Signal(syscall.SIGSTOP)
	waitOpen(t, late)
	time.Sleep(settleTime)
	late.Keep("ns", "k", []byte("1"), time.Hour)
	start := time.Now()
	late.Settle("ns", "k")
	if took := time.Since(start); took > settleTime/2 {
		t.Errorf("Settle waited %v for a Redis that has been lost for long", took)
	}
	r.Signal(syscall.SIGCONT)
}
