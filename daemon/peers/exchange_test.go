package peers

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/redistest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// TestExchangesThroughFaults: while requests come, a connection that breaks, or a Redis that is slow or full, costs the
// other router no record.
func TestExchangesThroughFaults(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	ctx, stop := context.WithCancel(context.Background())
	var all [2]*Peers
	ended := make(chan struct{}, 2)
	for i := range all {
		var err error
		all[i], err = Open(Config{Redis: redis.URL(), Prefix: "w/", Name: fmt.Sprint("router-", i), StreamBytes: 1 << 20,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		all[i].Join("p", newPool(t, &clock{began}, 2, 1<<16))
	}
	member := func(i int) *Member { return all[i].list()[0] }
	for i := range all {
		go func() { all[i].Run(ctx); ended <- struct{}{} }()
	}
	defer func() { stop(); <-ended; <-ended }()
	send := func() { // a request a millisecond
		now := time.Now()
		to := member(0).sender
		id := to.Sent(&route.Sent{Worker: worker.KeyOf("w1"), Space: 9, Est: .1, Tokens: 64, Block: 32}, nil, now)
		to.FirstByte(id, now)
		to.Ended(id, now)
		time.Sleep(time.Millisecond)
	}
	received := func() bool {
		sent, got := member(0).sender.Stats(), member(1).receiver.Stats()
		return !member(0).sender.hasQueued() && sent.Waiting == 0 && got.Frames+got.Repeated >= sent.Frames && got.Open == 0
	}
	const full = "CONFIG SET maxmemory 1"
	for _, breaks := range []string{"PING", "CLIENT KILL TYPE normal SKIPME yes", "CLIENT PAUSE 900 ALL", full, "CONFIG SET maxmemory 0"} {
		redis.Do(breaks)
		for range 50 {
			send()
		}
		if breaks == full {
			continue // Redis takes nothing until the next one
		}
		before := member(0).sender.Stats().Frames
		waittest.Until(t, "records are sent again", func() bool { send(); return member(0).sender.Stats().Frames > before+3 })
		waittest.Until(t, "the other router has received all", received)
	}
	if s := member(1).receiver.Stats(); s.Gaps+s.Foreign+s.Flooded+s.Unlinked > 0 {
		t.Errorf("something was lost: %+v", s)
	}
}
