package tier

import (
	"strings"
	"syscall"
	"testing"

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
