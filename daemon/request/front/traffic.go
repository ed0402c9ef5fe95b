package front

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// traffic counts the requests being served, and holds the connections that a drain must end. Its zero value is ready.
type traffic struct {
	leaving   atomic.Bool // clients are to turn elsewhere: from the delay before a drain on
	replaced  atomic.Bool // they find another process at the same address
	draining  atomic.Bool
	inFlight  atomic.Int64
	endedLate atomic.Int64  // requests that ended in the drain
	parked    sync.Map      // of *listen.Conn: those that wait for a request without fasthttp
	lives     message.Lives // of the requests
}

// begin counts a request up and returns its life, which end must be given.
func (t *traffic) begin() *message.Life {
	t.inFlight.Add(1)
	life := lives.Get().(*message.Life)
	t.lives.Begin(life)
	return life
}

// lives are those of requests that have ended.
var lives = sync.Pool{New: func() any { return new(message.Life) }}

// end counts a request down. The life may be another request's from then on.
func (t *traffic) end(life *message.Life) {
	life.Leave()
	if life.Renew() {
		lives.Put(life)
	}
	if t.draining.Load() {
		t.endedLate.Add(1)
	}
	t.inFlight.Add(-1)
}

// grace is for the request of a connection that was accepted, or answered, just as a drain begins.
const grace = 500 * time.Millisecond

// park marks a connection as one without a request, until unpark. It returns for how long it may wait for one.
func (t *traffic) park(conn *listen.Conn, idle time.Duration) time.Duration {
	t.parked.Store(conn, nil)
	if t.draining.Load() {
		return min(idle, grace)
	}
	return idle
}

func (t *traffic) unpark(conn *listen.Conn) { t.parked.Delete(conn) }

// full returns the fault of a request that would be one too many, none if there is room.
func (t *traffic) full(epoch *Epoch) message.Fault {
	switch {
	case t.inFlight.Load() >= int64(epoch.MaxInFlight):
		return message.FaultOverload
	case epoch.Saturated(time.Now()):
		return message.FaultFull
	}
	return message.Fault{}
}

// beginDrain closes the connections that are parked; one that is parked later has as long as grace.
func (t *traffic) beginDrain() {
	t.leaving.Store(true)
	t.draining.Store(true)
	t.parked.Range(func(conn, _ any) bool {
		conn.(*listen.Conn).Close()
		return true
	})
}

// awaitNone waits until no request is served, or until end. It returns how many still are.
func (t *traffic) awaitNone(end time.Time) int64 {
	for t.inFlight.Load() > 0 && time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
	}
	return t.inFlight.Load()
}
