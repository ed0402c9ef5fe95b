package unit

import (
	"os"
	"strconv"
	"time"
)

// watchdog is how long the service manager waits for a sign of life (WatchdogSec=); 0 = it waits for none.
//
// The variable WATCHDOG_PID names the process that it expects. In an upgrade it names the old process, because a
// successor inherits the variable from it.
func watchdog(successor bool) time.Duration {
	usec, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	pid := os.Getenv("WATCHDOG_PID")
	if err != nil || usec <= 0 || pid != "" && pid != strconv.Itoa(os.Getpid()) && !successor {
		return 0
	}
	return time.Duration(usec) * time.Microsecond
}

// Alive sends a sign of life, twice in each time of the watchdog. Call it once a second, from a loop that would hang
// if the process did. Without the call the service manager kills the process. Once another process serves, that one
// sends it.
func (m *Manager) Alive(now time.Time) {
	if m == nil || m.watchdog == 0 || m.IsReplaced() || m.Succeeds() && m.current() == starting {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Sub(m.alive) >= m.watchdog/2-time.Second/4 {
		m.alive = now
		m.send("WATCHDOG=1")
	}
}
