package tier

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/waittest"
)

// A Redis that fell silent and comes back as a replica is known by what it says, with one line.
func TestALostRedisThatRefuses(t *testing.T) {
	r := startRedis(t)
	s, lines := open(t, Config{Redis: r.URL()})
	keepBusy(t, s)
	r.Signal(syscall.SIGSTOP)
	waitOpen(t, s)
	if why := s.Stats().L2.Why; strings.Contains(why, "primary") {
		t.Errorf("a silent Redis: %s", why)
	}
	r.Kill()
	r.Start()
	r.bare.Do(t.Context(), "REPLICAOF", "127.0.0.1", "1")
	waittest.Until(t, "the state says what the Redis says", func() bool {
		return strings.Contains(s.Stats().L2.Why, "READONLY") && strings.Contains(s.Stats().L2.Why, "name the primary")
	})
	if n := strings.Count(strings.Join(lines.all(), ""), "Redis answers again, and refuses"); n != 1 {
		t.Errorf("%d lines; want 1: %s", n, lines.all())
	}
}

// A full Redis, or a replica after a failover, answers reads and refuses writes: it is as good as lost until it takes them.
func TestRefusesWrites(t *testing.T) {
	t.Parallel()
	r := startRedis(t)
	s, _ := open(t, Config{Redis: r.URL(), Timeout: 50 * time.Millisecond})
	s.Set("ns", "k", []byte("1"), time.Hour)
	ctx := context.Background()
	r.bare.Do(ctx, "REPLICAOF", "127.0.0.1", "1")
	waitOpen(t, s)
	s.Set("ns", "k", []byte("2"), time.Hour)
	want(t, s, "k", "2")
	r.bare.Do(ctx, "REPLICAOF", "NO", "ONE")
	waitClosed(t, s)
	other, _ := open(t, Config{Redis: r.URL(), Timeout: patient})
	want(t, other, "k", "2")
}
