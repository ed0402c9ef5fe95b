package zmtp

import (
	"container/list"
	"net"
	"sync"
)

// newcomers holds the peers of a Listener that have yet to settle, the longest waiting first. So strangers that stay
// silent cannot take all connections. The zero value is ready.
type newcomers struct {
	mu  sync.Mutex // guards all
	all list.List  // of *newcomer
}

// newcomer is one such peer. A nil newcomer is of a peer that no Listener has accepted.
type newcomer struct {
	among *newcomers
	at    *list.Element // nil = it has left
	conn  net.Conn
}

func (p *newcomers) add(conn net.Conn) *newcomer {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := &newcomer{among: p, conn: conn}
	at.at = p.all.PushBack(at)
	return at
}

// closeOldest closes the connection of the longest waiting peer and returns it; nil = none waits.
func (p *newcomers) closeOldest() net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.all.Front()
	if first == nil {
		return nil
	}
	at := first.Value.(*newcomer)
	at.remove()
	at.conn.Close()
	return at.conn
}

// leave takes the peer out, because it has settled or gone. It reports whether the peer was still in: closeOldest may
// have taken it out before.
func (at *newcomer) leave() bool {
	if at == nil {
		return false
	}
	at.among.mu.Lock()
	defer at.among.mu.Unlock()
	return at.remove()
}

// remove is leave where the caller holds mu.
func (at *newcomer) remove() bool {
	if at.at == nil {
		return false
	}
	at.among.all.Remove(at.at)
	at.at = nil
	return true
}
