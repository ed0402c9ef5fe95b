package kvstore

import (
	"context"
	"time"
)

// Backing is a tier behind the memory: a disk, or servers. Its methods are called by many at once, Exists, Put and
// Delete under the store's lock or close to it: these three never wait, and never call the store.
type Backing interface {
	// Exists reports, from its own memory, whether it has the key. With a time above zero it keeps the value until then
	// if it can.
	Exists(key string, keep time.Time) bool

	// Get calls place with what comes, again if that was wrong, and fills the pieces that it gets last. false = it has
	// none. It returns when ctx ends.
	Get(ctx context.Context, key string, place Place) (bool, error)

	// Put forgets what it has of the key. It takes the lease over and releases it later, from a goroutine of its own;
	// false = it does not want the value. What Commit has to wait for is closed when the value is written, or is not
	// going to be; nil = nothing.
	Put(key string, expires time.Time, value *Lease) (written <-chan struct{}, taken bool)

	// Delete forgets the key, and reports whether it had it.
	Delete(key string) bool
}

// Sure is a Backing that can lose a value without a word. Sure reports, from its own memory, that it has not lost what
// it says it has; if it cannot tell, it finds out in the background. It never waits.
type Sure interface{ Sure(key string) bool }

// Informed is a Backing that knows of its values more than that they are there. Info tells the length and the end from
// its own memory; a zero end means none. It never waits.
type Informed interface {
	Info(key string) (size int64, expires time.Time, ok bool)
}

// Keeper is a Backing that keeps what Exists promised until the time that it was given. Unkeep ends that sooner, as
// who was promised the value has it. It never waits.
type Keeper interface{ Unkeep(key string) }

// Rescuer is a Backing that may not have taken a value when it was put. Memory calls Rescue when it is about to evict
// the value: taken = it was not there, and a lease on it was taken over; soon = it will be taken a little later, if
// memory has another victim. It never waits.
type Rescuer interface {
	Rescue(key string, size int64, expires time.Time, lease func() *Lease) (taken, soon bool)
}

// Place returns room for a value that comes from a Backing.
type Place func(Arrival) ([][]byte, error)

// Arrival is a value that comes from a Backing.
type Arrival struct {
	Size    int64
	Expires time.Time // zero = never
	Passing bool      // memory keeps it for its readers and promises only
}

// behind are the tiers behind the memory, in order.
type behind struct {
	all  []Backing
	here int // as many of them, the first, are on this machine
}

func newBehind(disk, far Backing) (b behind) {
	if disk != nil {
		b.all = append(b.all, disk)
		b.here = 1
	}
	if far != nil {
		b.all = append(b.all, far)
	}
	return b
}

// within lists what a call may ask.
func (b *behind) within(r Reach) []Backing {
	if r == Here {
		return b.all[:b.here]
	}
	return b.all
}

// find returns which of them has the key, by its place; -1 = none.
func (b *behind) find(key string, r Reach) int {
	for i, t := range b.within(r) {
		if t.Exists(key, time.Time{}) {
			return i
		}
	}
	return -1
}

// unkeep ends the promise of a value on this machine.
func (b *behind) unkeep(key string) {
	for _, t := range b.within(Here) {
		if k, ok := t.(Keeper); ok {
			k.Unkeep(key)
		}
	}
}

// rescue offers a value that memory is about to evict to those on this machine. It reports whether memory should look
// for another victim.
func (b *behind) rescue(e *entry, lease func() *Lease) bool {
	for _, t := range b.within(Here) {
		if r, ok := t.(Rescuer); ok {
			if taken, soon := r.Rescue(e.key, e.size, e.expires, lease); taken || soon {
				return true
			}
		}
	}
	return false
}

// sure reports that one of them has what it says it has.
func (b *behind) sure(i int, key string) bool {
	s, ok := b.all[i].(Sure)
	return !ok || s.Sure(key)
}

// info returns what those on this machine know of a value.
func (b *behind) info(key string) (size int64, expires time.Time, ok bool) {
	for _, t := range b.within(Here) {
		i, can := t.(Informed)
		if !can {
			continue
		}
		size, expires, ok = i.Info(key)
		if ok {
			return size, expires, true
		}
	}
	return 0, time.Time{}, false
}

// delete deletes the key in all of them, and reports whether one had it.
func (b *behind) delete(key string, r Reach) (had bool) {
	for _, t := range b.within(r) {
		had = t.Delete(key) || had
	}
	return had
}

// put offers all of them the value, with a lease for each, and returns what to wait for.
func (b *behind) put(e *entry, r Reach, lease func() *Lease) (waits []<-chan struct{}) {
	for _, t := range b.within(r) {
		l := lease()
		written, taken := t.Put(e.key, e.expires, l)
		if !taken {
			l.drop()
		}
		if written != nil {
			waits = append(waits, written)
		}
	}
	return waits
}
