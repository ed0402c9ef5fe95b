package tier

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
)

// The breaker closes when Redis has got everything, and not before.
func TestTheBreakerClosesWhenAllIsPaid(t *testing.T) {
	r := startRedis(t)
	s := notRun(t, Config{Redis: r.URL(), Timeout: patient})
	ctx, h := context.Background(), healer{&s.tiers}
	s.l2.breaker.Trip(time.Now())
	for i := range 2 * batch {
		s.Set("ns", fmt.Sprint(i), []byte("1"), time.Hour)
	}
	r.bare.Do(ctx, "ACL", "SETUSER", "default", "-eval") // it takes probes, and nothing that is owed
	h.heal(ctx)
	if st := s.Stats().L2; !st.Open || st.Owing != 2*batch || st.Told != 0 {
		t.Errorf("%+v; want it open, and all owed", st)
	}
	r.bare.Do(ctx, "ACL", "SETUSER", "default", "+eval")
	h.heal(ctx)
	if st := s.Stats().L2; st.Open || st.Owing != 0 || st.Told != 2*batch {
		t.Errorf("%+v; want it closed, and nothing owed", st)
	}
	if s.l2.epoch.forRequest() != doubted {
		t.Error("it is believed at once")
	}
}

// A Redis that has forgotten gets back what memory holds, at a later pulse if not at this one.
func TestRestoreIsTriedAgain(t *testing.T) {
	r := startRedis(t)
	s := notRun(t, Config{Redis: r.URL(), Timeout: patient})
	ctx, h := context.Background(), healer{&s.tiers}
	h.heal(ctx)
	s.Set("ns", "k", []byte("1"), time.Hour)
	r.bare.FlushAll(ctx)
	r.bare.Do(ctx, "ACL", "SETUSER", "default", "-eval")
	h.heal(ctx)
	r.bare.Do(ctx, "ACL", "SETUSER", "default", "+eval")
	h.heal(ctx)
	if got := r.bare.Get(ctx, s.l2.keys.key(id{"ns", "k"})).Val(); got != "v1" {
		t.Errorf("Redis has %q; want v1", got)
	}
}

// While the breaker is open the first answer may take its time, and those after it may not.
func TestProbe(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	var delay atomic.Int64
	s := notRun(t, Config{Redis: "redis://" + proxy(t, listen(t), r.Socket(), &delay), Timeout: 300 * time.Millisecond})
	ctx, h := context.Background(), healer{&s.tiers}
	if !h.probe(ctx, true) || !h.probe(ctx, false) {
		t.Error("a Redis that answers is taken for lost")
	}
	delay.Store(int64(600 * time.Millisecond))
	if h.probe(ctx, true) || h.probe(ctx, false) {
		t.Error("a slow Redis is taken for well")
	}
	time.Sleep(700 * time.Millisecond) // what was asked is answered
	time.AfterFunc(200*time.Millisecond, func() { delay.Store(0) })
	if !h.probe(ctx, true) {
		t.Error("one late answer is held against it")
	}
}
