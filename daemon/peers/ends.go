package peers

import (
	"time"

	"github.com/warmpath/warmpath/daemon/route"
)

// Ends returns both ends of one pool's history without a Redis between them. After pool.Tell(teller) the pool reports
// each change of its own books to the teller. Teller.Take returns these changes as frames. Hearer.Hear of another pool
// with the same Secret applies the frames, however late. Neither end has a clock, a socket or a goroutine, so that
// routers can be simulated. self must differ between routers and must not be 0.
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
