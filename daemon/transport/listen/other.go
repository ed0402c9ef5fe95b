//go:build !linux

package listen

import (
	"net"
	"time"
)

func newWatcher() (watcher, error) { return newPeek() }

// tune sets nothing: the options are Linux's.
func tune(net.Conn, time.Duration) error { return nil }

// unsent is not known: a broken stream's last bytes may be lost.
func unsent(net.Conn) int { return 0 }
