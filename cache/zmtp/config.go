package zmtp

import (
	"time"

	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/cache/parts/quota"
)

// Kind is the type of a socket, as READY names it.
type Kind string

// The kinds spoken here.
const (
	PUB    Kind = "PUB"
	SUB    Kind = "SUB"
	DEALER Kind = "DEALER"
	ROUTER Kind = "ROUTER"
	PUSH   Kind = "PUSH"
	PULL   Kind = "PULL"
	REQ    Kind = "REQ"
	REP    Kind = "REP"
)

// partners lists which kinds each kind may talk to.
var partners = map[Kind][]Kind{
	PUB: {SUB, "XSUB"}, SUB: {PUB, "XPUB"},
	DEALER: {ROUTER, REP, DEALER}, ROUTER: {DEALER, REQ, ROUTER},
	PUSH: {PULL}, PULL: {PUSH},
	REQ: {REP, ROUTER}, REP: {REQ, DEALER},
}

// Config is what a connection or a listener is and may take. Kind must be set; zero means the default elsewhere.
type Config struct {
	Kind      Kind
	Identity  string   // of a DEALER, REQ or ROUTER, at most 255 bytes; "" = none
	Subscribe []string // prefixes of topics that a SUB wants, "" for all; none = nothing comes

	MaxFrame   int          // bytes of one frame; 64 MiB
	MaxMessage int          // bytes of all frames of a message; 64 MiB
	MaxFrames  int          // of a message; 1024
	Peers      int          // connections that a Listener keeps; 1024
	Held       *quota.Bytes // bytes of messages that those who share it hold, beyond 8 KiB a connection; nil = no bound

	// Refused, if set, is called with each peer that a Listener turns away, and why. It must be safe for use side by side.
	Refused func(Address, error)

	Bind bind.Binder // of a Listener's socket; nil = the system

	Handshake time.Duration // from the connection to READY, and for Dial the connecting too; 5 s
	First     time.Duration // from READY to Conn.Settle; 0 = for ever
	Message   time.Duration // for the rest of a message that has begun to come; 30 s
	Write     time.Duration // for one message to leave; 10 s
	Heartbeat time.Duration // a PING to a peer of 3.1 that often; three without a sign of life end the Conn. 0 = none
}

// The limits when none are given. The largest KV event seen is 2 MB: 128k tokens of five bytes with their hashes.
const (
	defaultMaxBytes  = 64 << 20
	defaultMaxFrames = 1024
	defaultPeers     = 1024
	defaultHandshake = 5 * time.Second
	defaultMessage   = 30 * time.Second
	defaultWrite     = 10 * time.Second
)

// withDefaults returns c with the defaults for what is zero.
func (c Config) withDefaults() Config {
	c.MaxFrame = orDefault(c.MaxFrame, defaultMaxBytes)
	c.MaxMessage = orDefault(c.MaxMessage, defaultMaxBytes)
	c.MaxFrames = orDefault(c.MaxFrames, defaultMaxFrames)
	c.Peers = orDefault(c.Peers, defaultPeers)
	c.Handshake = orDefault(c.Handshake, defaultHandshake)
	c.Message = orDefault(c.Message, defaultMessage)
	c.Write = orDefault(c.Write, defaultWrite)
	return c
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v <= 0 {
		return otherwise
	}
	return v
}
