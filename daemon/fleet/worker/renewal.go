package worker

import "time"

// A worker's list of models is read every ten seconds, and adapters come and go between. So a list must be read again
// before a request is refused because of it, and an answer that contradicts the list causes a new reading.

// renewEvery is the least time between two readings of all lists: clients may ask for nonsense again and
// again.
const renewEvery = time.Second

// renewal is how far the reading of an endpoint's list is that somebody waits for.
type renewal uint8

const (
	renewed renewal = iota // no request waits
	wanted                 // the worker has not been asked since
	reading                // it has been asked
)

// begun records that the worker is asked now.
func (r *renewal) begun() {
	if *r == wanted {
		*r = reading
	}
}

// answered records that a reading has ended. One that began before the list was wanted anew does not count.
func (r *renewal) answered() {
	if *r == reading {
		*r = renewed
	}
}
