package kvcache

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/kvstore/remote"
	"github.com/warmpath/warmpath/daemon/kv/hyperpod"
)

// vigil logs a matter once, and again after a minute if it goes on.
func TestVigil(t *testing.T) {
	var out bytes.Buffer
	v := newVigil(slog.New(slog.NewTextHandler(&out, nil)))
	now := time.Unix(1_800_000_000, 0)
	refused := map[string]uint64{"full": 0, "closed": 0}
	e := chunks.Estimate{}
	after := func(d time.Duration, want ...string) {
		t.Helper()
		now = now.Add(d)
		v.look(now, refused, e)
		got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if out.Len() == 0 {
			got = nil
		}
		if len(got) != len(want) {
			t.Fatalf("%q; want %q", got, want)
		}
		for i := range want {
			for _, part := range strings.Split(want[i], "|") {
				if !strings.Contains(got[i], part) {
					t.Errorf("%q; want %q in it", got[i], part)
				}
			}
		}
		out.Reset()
	}
	after(time.Second)
	refused["full"], refused["closed"] = 3, 9
	after(time.Second, "level=WARN|why=full|values=3|enlarge kv_cache.max_bytes")
	refused["full"] = 5
	after(time.Second)
	v.lookBroken(now, 0)
	v.lookBroken(now, 2)
	v.lookBroken(now, 3)
	if got := strings.Count(out.String(), "\n"); got != 1 || !strings.Contains(out.String(), "values=2") {
		t.Errorf("%q; want one line of two broken promises", out.String())
	}
	out.Reset()
	v.lookCrowded(now, &remote.Stats{Crowded: 7, Queued: 5})
	v.lookCrowded(now, &remote.Stats{Crowded: 8})
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "values=7 waiting_bytes=5") {
		t.Errorf("%q; want one line of seven values that L2 did not get", got)
	}
	out.Reset()
	refused["too_large"] = 1
	after(time.Second, "why=too_large|values=1|chunk_size")
	after(time.Minute, "why=full|values=2")
	after(time.Minute)
	e = chunks.Estimate{Tokens: 1000, Guessed: true, ChunkGuessed: true}
	after(time.Second, "level=WARN|tokens=1000|chunk_tokens_guessed=true|[lmcache] chunk_size")
	e.Tokens = 1200
	after(time.Hour)
	e = chunks.Estimate{Tokens: 9000}
	after(time.Second, "level=INFO|tokens=9000|chunk_tokens_guessed=false")
	e.Tokens = 100
	after(time.Second)
	after(time.Minute, "tokens=100")
}

// TestQuietSaysHowLong: what refuses puts after a start names the time for which it does.
func TestQuietSaysHowLong(t *testing.T) {
	for _, text := range []string{remedies["quiet"], kvstore.ErrQuiet.Error()} {
		if hyperpod.MaxLease != time.Minute || !strings.Contains(text, " a minute") || strings.Contains(text, "half") {
			t.Errorf("%q; want %s", text, hyperpod.MaxLease)
		}
	}
}
