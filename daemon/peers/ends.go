package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// Ends returns the two ends of one pool's history without a Redis between them: pool.Tell(teller) gives what the pool
// does to its own books to the teller, Teller.Take returns it as frames, and Hearer.Hear of another pool with the same
// Secret applies them, however late. They have no clock, no socket and no goroutine, so that routers can be simulated.
// self must differ between routers and not be 0.
func Ends(pool *route.Pool, self uint64) (*Teller, *Hearer) {
	secret := pool.Secret()
	mark := secret.Fingerprint()
	_, t, h := ends(pool, self, func() uint64 { return mark }, func(time.Time) {}, nil)
	return t, h
}

func ends(pool *route.Pool, self uint64, mark func() uint64, wake func(at time.Time), session func(Session)) (*chains,
	*Teller, *Hearer) {
	c := newChains()
	t := &Teller{self: self, mark: mark, chains: c, wake: wake, open: map[uint64]told{}}
	h := &Hearer{pool: pool, self: self, mark: mark, chains: c, session: session, senders: map[uint64]*sender{}}
	return c, t, h
}
