package front

import (
	"time"

	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// Epoch is what is in force when a request comes in. A reload makes another. It is never changed.
type Epoch struct {
	epoch.Epoch
	CORS        gate.CORS
	RootPaths   []string // prefixes that a proxy in front does not remove
	MaxBody     int      // bytes of a body
	BufferBody  int      // of these held in memory
	MaxInFlight int
	ReadTimeout time.Duration
	IdleTimeout time.Duration
	Keepalive   time.Duration // between two comments to a client that waits for a stream; 0 = there are none
	SocketIdle  time.Duration // of a WebSocket on which neither side sends anything; 0 = for ever
}
