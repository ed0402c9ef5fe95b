package kvcache

import (
	"log/slog"
	"testing"

	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// TestFlushOfPool: one member makes the others delete their own values, and counts these.
func TestFlushOfPool(t *testing.T) {
	members := []string{porttest.Address(t), porttest.Address(t), porttest.Address(t)}
	r := run{Members: members, L1: true, Password: "s"}
	var all []*process
	for _, m := range members[1:] {
		r.Self = m
		p := &process{t: t, run: r}
		p.start()
		t.Cleanup(p.kill)
		all = append(all, p)
	}
	put(t, all[0].client())
	r.Self = members[0]
	k, err := Open(r.config(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = k.Run() }()
	defer k.Close()
	there := func() (n int64) {
		for _, p := range all {
			n += p.client().DBSize(t.Context()).Val()
		}
		return n
	}
	before := there()
	waittest.Until(t, "the members are known", func() bool {
		n, err := k.FlushL2(t.Context(), "r\x01")
		return n == 0 && err == nil
	})
	if n, err := k.FlushL2(t.Context(), "r\x00k"); n != before || before < poolKeys || err != nil {
		t.Errorf("FlushL2 = %d, %v; want the %d that there were", n, err, before)
	}
	if n := there(); n != 0 {
		t.Errorf("%d values are left", n)
	}
	if text := all[0].client().Do(t.Context(), remote.FlushCommand, "", "").Err(); text == nil {
		t.Error("a client that is no member may flush")
	}
	all[1].kill()
	waittest.Until(t, "a member that is down is an error", func() bool {
		_, err := k.FlushL2(t.Context(), "")
		return err != nil
	})
}
