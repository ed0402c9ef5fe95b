package kvcache

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// heirOf opens a cache that takes the place of another with the same folder and segment.
func heirOf(t *testing.T, c Config) (k *Cache, log *bytes.Buffer, ran chan error) {
	t.Helper()
	log = new(bytes.Buffer) // read after Run has returned
	c.Succeeds, c.RESP, c.Log = true, "127.0.0.1:0", slog.New(slog.NewTextHandler(log, nil))
	k, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	ran = make(chan error, 1)
	go func() { ran <- k.Run() }()
	t.Cleanup(k.Close)
	return k, log, ran
}

func wait(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// TestSuccession: after the first cache has closed, the heir has the cache, spilled values included; before that, none.
func TestSuccession(t *testing.T) {
	c := config()
	c.RESP, c.SpillDir, c.SpillBytes = "127.0.0.1:0", t.TempDir(), 64<<20
	c.HyperPod, c.Segment = "127.0.0.1:0", segmentName(t)
	old, stop := running(t, c)
	ctx := context.Background()
	if err := client(t, old).Set(ctx, "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	k, _, ran := heirOf(t, c)
	if _, there := k.Stats(); there || k.RESPAddr() != "" || k.Page("", "", 10) != nil || k.Delete("key") || k.Value(ctx, "key") != nil {
		t.Error("two have the cache at once")
	}
	if _, there := k.Holds(); there {
		t.Error("two have the cache at once")
	}
	k.SetMembers(Members{})
	stop()
	wait(t, "the heir has the cache", func() bool { return k.RESPAddr() != "" && k.HyperPodAddr() != "" })
	if s, _ := k.Stats(); s.Spill == nil {
		t.Errorf("%+v: nothing is spilled", s)
	}
	if err := client(t, k).Set(ctx, "other", "value", 0).Err(); err != nil {
		t.Error(err)
	}
	k.Close()
	if err := <-ran; err != nil {
		t.Error(err)
	}
}

// TestNothingIsLeft: the first cache is never released, or the heir is closed first.
func TestNothingIsLeft(t *testing.T) {
	c := config()
	c.RESP, c.SpillDir, c.SpillBytes = "127.0.0.1:0", t.TempDir(), 64<<20
	running(t, c)
	for limit, want := range map[time.Duration]string{time.Nanosecond: "level=ERROR", time.Hour: ""} {
		before := heldFor
		heldFor = limit
		k, log, ran := heirOf(t, c)
		if limit < time.Hour {
			doors := k.heir.(*succession)
			wait(t, "the doors are closed", func() bool {
				doors.mu.Lock()
				defer doors.mu.Unlock()
				return doors.doors == nil
			})
		}
		k.Close()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		heldFor = before
		if text := log.String(); want == "" && text != "" || !strings.Contains(text, want) {
			t.Errorf("the log is %q; want %q", text, want)
		}
	}
}
