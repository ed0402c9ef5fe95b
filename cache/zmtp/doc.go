// Package zmtp speaks ZMTP 3.1, the wire of ZeroMQ, with the NULL mechanism: as much of it as vLLM's KV events and
// LMCache's controller need, over tcp:// and ipc://. https://rfc.zeromq.org/spec/37/ is the source of the bytes.
//
// # The shape
//
// Dial makes a Conn, Listen a Listener that hands each peer to a function of its own goroutine, as net/http does. A
// Conn sends and receives messages of one or more frames: it knows no envelopes and no identities. The package has no
// part that corresponds to a socket of libzmq. Callers do that part, and use the connection as the identity:
//
//	SUB     Dial or Listen, Config.Subscribe; each message is [topic, ...]
//	PUB     Listen or Dial, Conn.OnCommand for the subscriptions
//	DEALER  Dial; to a REP or ROUTER send an empty frame first, and expect one first
//	ROUTER  Listen; answer on the Conn from which the message came: [empty, ...] in, [empty, ...] out
//	PUSH    Dial     PULL    Listen
//	REQ     Dial; as DEALER     REP    Listen; as ROUTER
//
// The Conn answers a PING by itself, and pings a peer of 3.1 where Config.Heartbeat is set.
//
// # What a hostile peer cannot do
//
// Claim a length: a frame is read as its bytes come, so memory follows what was sent, never what was announced
// (TestAnnouncedLengthCostsNothing). Send without end: frame, message, frames of a message and commands have
// limits, and a peer over one is disconnected. Be slow: the handshake, the rest of a message that has begun, and every
// write have deadlines. Take all connections: a Listener keeps Config.Peers at most, and one that has not settled
// within
// Config.First is closed, or as soon as another wants its place. Take all memory: what all connections hold of
// messages
// together is bounded by Config.Held. A listening socket has no key of its own (NULL), so it belongs on a network that
// only the workers reach.
//
// why.md has the reasons and the details, and what lost.
package zmtp
