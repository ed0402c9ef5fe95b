package peers

import "github.com/warmpath/warmpath/daemon/request/route"

// NewPair returns both ends of one pool's history without a Redis between them. After pool.Tell(sender) the pool
// reports each change of its own books to the sender. Sender.Take returns these changes as frames. Receiver.Apply of
// another pool with the same Secret applies the frames, however late. Neither end has a clock, a socket or a goroutine,
// so that routers can be simulated. self must differ between routers and must not be 0.
func NewPair(pool *route.Pool, self uint64) (*Sender, *Receiver) {
	secret := pool.Secret()
	_, s, r := newPair(pool, self, alone(secret.Fingerprint()))
	return s, r
}

func newPair(pool *route.Pool, self uint64, o owner) (*chains, *Sender, *Receiver) {
	c := newChains()
	s := &Sender{self: self, owner: o, chains: c, open: map[uint64]openRequest{}}
	r := &Receiver{pool: pool, self: self, owner: o, chains: c, peers: map[uint64]*peer{}, drains: &drains{pool: pool}}
	return c, s, r
}
