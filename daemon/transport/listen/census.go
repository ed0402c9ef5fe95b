package listen

import (
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/seldom"
)

// census counts the connections of a Listener and bounds them. It holds what each connection needs of its Listener.
type census struct {
	start        time.Time     // write deadlines are reckoned from here
	writeTimeout time.Duration // see Config
	longSilence  time.Duration // see Conn.Await
	log          *slog.Logger
	limit        string // the name of most in the configuration
	watcher      watcher
	parking      parking

	accepted, refused, gone, slow atomic.Uint64

	pressed atomic.Bool // see Conn.LackRoom

	plainLine seldom.Line // for warnPlain
	fullLine  seldom.Line // for warnFull
	roomLine  seldom.Line // for letGo

	untrustedLine seldom.Line // for warnUntrusted

	mu      sync.Mutex // guards the rest
	most    int        // Config.MaxConns, or the bound of SetMaxConns
	open    int
	waiting int // goroutines in Accept, each of which may bring a connection after shut
	closed  bool
	ended   bool // the watching
}

// enter counts a connection in, and returns false if there are as many as may be.
func (n *census) enter() bool {
	n.mu.Lock()
	most, closed := n.most, n.closed
	full := most > 0 && n.open >= most
	if !full {
		n.open++
	}
	n.mu.Unlock()
	if full {
		n.refused.Add(1)
		if !closed {
			n.warnFull(most)
		}
		return false
	}
	n.accepted.Add(1)
	return true
}

// leave counts a connection out. The last one after shut ends the watching.
func (n *census) leave() {
	n.mu.Lock()
	n.open--
	n.endIfLast()
}

// accepting counts a goroutine in that waits for connections, and acceptEnded counts it out.
func (n *census) accepting() {
	n.mu.Lock()
	n.waiting++
	n.mu.Unlock()
}

func (n *census) acceptEnded() {
	n.mu.Lock()
	n.waiting--
	n.endIfLast()
}

// endIfLast unlocks mu, and ends the watching if no connection is left.
func (n *census) endIfLast() {
	last := n.closed && n.open == 0 && n.waiting == 0 && !n.ended
	n.ended = n.ended || last
	n.mu.Unlock()
	if last {
		n.watcher.close()
		close(n.parking.done)
	}
}

// shut lets no connection in any more. It returns false if that was so already.
func (n *census) shut() bool {
	n.mu.Lock()
	was := n.closed
	n.closed = true
	n.endIfLast()
	return !was
}

// warnFull logs that connections are refused, every ten seconds at most. A log that is stuck keeps only this caller
// waiting, so mu is not held.
func (n *census) warnFull(most int) {
	if n.fullLine.Due(time.Now(), warnEvery) {
		n.log.Warn("listen: connections are refused, as many are open as may be; find who keeps them, or raise "+
			"the setting and the limit of open files", "setting", n.limit, "max_connections", most)
	}
}

// warnPlain logs that a client speaks without TLS, every ten seconds at most.
func (n *census) warnPlain(client string) {
	if n.plainLine.Due(time.Now(), warnEvery) {
		n.log.Warn("listen: a client spoke plain HTTP to a port that serves TLS; give it an https:// URL", "client", client)
	}
}

// warnUntrusted logs that a client refuses the certificate, every ten minutes at most: the client sends an alert as it
// ends the handshake.
func (n *census) warnUntrusted(client string, err error) {
	var alert *net.OpError
	refused := errors.As(err, &alert) && alert.Op == "remote error" && strings.Contains(err.Error(), "certificate")
	if refused && n.untrustedLine.Due(time.Now(), 10*time.Minute) {
		n.log.Warn("listen: a client refuses the TLS certificate; see its dates and names, and whether clients know who "+
			"signed it", "client", client, "error", err)
	}
}

// warnEvery is the least time between two warnings of one kind.
const warnEvery = 10 * time.Second
