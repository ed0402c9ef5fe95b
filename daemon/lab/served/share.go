package served

import (
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/world"
	"github.com/warmpath/warmpath/daemon/peers"
)

// mostTold bounds the bytes of frames at a time; what is over waits for the next.
const mostSent = 16 << 20

// share makes the two ends of the history that several routers share. number is the router's.
func (r *Router) share(number int) {
	r.sender, r.receiver = peers.NewPair(r.pool, uint64(number)+1)
	r.pool.Tell(r.sender)
}

// Told implements [world.Sharer].
func (r *Router) Told(now time.Duration) [][]byte {
	if r.sender == nil {
		return nil
	}
	frames := r.sender.Take(mostSent, r.at(now))
	r.sender.Confirm(frames)
	own := make([][]byte, len(frames))
	for i := range frames {
		own[i] = slices.Clone(frames[i])
	}
	return own
}

// Hear implements [world.Sharer].
func (r *Router) Hear(now, sent time.Duration, frame []byte) {
	if r.receiver == nil {
		return
	}
	if err := r.receiver.Apply(frame, epoch.Add(sent), r.at(now)); err != nil {
		panic("BUG: served: a frame of another router of the run is not believed: " + err.Error())
	}
}

var _ world.Sharer = (*Router)(nil)
