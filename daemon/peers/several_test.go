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

// TestHistoryOverSeveralRedises: two routers of two pools hear each other over a cluster of three, and over a Sentinel,
// there also after its primary has died.
func TestHistoryOverSeveralRedises(t *testing.T) {
	t.Parallel()
	cluster, _ := redistest.Cluster(t)
	sentinel, primary, _ := redistest.Sentinels(t)
	for _, c := range []struct {
		url    string
		breaks func()
	}{{cluster, func() {}}, {sentinel, primary.Kill}} {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{}, 2)
		var all [2]*Peers
		for i := range all {
			var err error
			all[i], err = Open(Config{Redis: c.url, Prefix: "w/", Name: fmt.Sprint("router-", i), StreamBytes: 1 << 20,
				Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			all[i].Join("p", newPool(t, &clock{began}, 2, 1<<16))
			all[i].Join("q", newPool(t, &clock{began}, 2, 1<<16))
			go func() { all[i].Run(ctx); ended <- struct{}{} }()
		}
		heard := func(pool int, more uint64) {
			t.Helper()
			to, from := all[0].list()[pool].sender, all[1].list()[pool].receiver
			before := from.Stats().Frames
			waittest.Until(t, c.url+": the other router hears", func() bool {
				now := time.Now()
				id := to.Sent(&route.Sent{Worker: worker.KeyOf("w1"), Space: 9, Est: .1, Tokens: 64, Block: 32}, nil, now)
				to.Ended(id, now)
				time.Sleep(20 * time.Millisecond)
				return from.Stats().Frames > before+more
			})
		}
		heard(0, 10)
		heard(1, 10)
		c.breaks()
		heard(0, 10)
		if s := all[0].Stats(); !s.Connected {
			t.Errorf("%s: %+v", c.url, s)
		}
		stop()
		<-ended
		<-ended
	}
}
