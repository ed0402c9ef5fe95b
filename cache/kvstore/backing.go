package kvstore

import (
	"context"
	"time"
)

// Backing is a tier behind the memory: a disk, or servers. Many goroutines call its methods at once. The store calls
// Exists, Put and Delete under its lock or close to it: these three never wait, and never call the store.
type Backing interface {
	// Exists reports, from the tier's own memory, whether it has the key. With keep above zero the tier keeps the value
	// until then if it can.
	Exists(key string, keep time.Time) bool

	// Get calls place with the properties of the value, and again if these were wrong, and fills the pieces of the last
	// call. false = it has no value. It returns when ctx ends.
	Get(ctx context.Context, key string, place Place) (bool, error)

	// Put drops the key's old value. It takes the lease over and releases it later, from a goroutine of its own; false =
	// it refuses the value. Commit waits for written, which is closed when the value is written or given up; nil = no
	// wait.
	Put(key string, expires time.Time, value *Lease) (written <-chan struct{}, taken bool)

	// Delete drops the key, and reports whether the tier had it.
	Delete(key string) bool
}

// Sure is a Backing that can lose a value without notice. Sure reports, from its own memory, whether the key's value is
// certainly still there; if it cannot decide, it finds out in the background. It never waits.
type Sure interface{ Sure(key string) bool }

// Informed is a Backing that has more data on its values in memory. Info returns the length and the end; a zero end
// means none. It never waits.
type Informed interface {
	Info(key string) (size int64, expires time.Time, ok bool)
}

// Keeper is a Backing that keeps a value for the time of a promise, which Exists has set. Unkeep ends that sooner,
// because the client has read the value. It never waits.
type Keeper interface{ Unkeep(key string) }

// Rescuer is a Backing that may have refused a value when it was put. The store calls Rescue before memory evicts the
// value. taken = the tier did not have it, and takes a lease on it over; soon = it will take it a little later, if
// memory evicts another value first. It never waits.
type Rescuer interface {
	Rescue(key string, size int64, expires time.Time, lease func() *Lease) (taken, soon bool)
}

// Place returns memory for a value that comes from a Backing.
type Place func(Arrival) ([][]byte, error)

// Arrival is a value that comes from a Backing.
type Arrival struct {
	Size    int64
	Expires time.Time // zero = never
	Passing bool      // memory keeps it for its readers and promises only
}

// behind holds the tiers behind the memory, in order.
type behind struct {
	all  []Backing
	here int // the number of tiers, the first ones, on this machine
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

// within returns the tiers that a call with that Reach may use.
func (b *behind) within(r Reach) []Backing {
	if r == Here {
		return b.all[:b.here]
	}
	return b.all
}

// find returns the index of the first tier that has the key; -1 = none.
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

// rescue offers a value that memory is about to evict to the tiers on this machine. It reports whether memory should
// evict another value first.
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

// sure reports whether the tier with that index certainly still has the key's value.
func (b *behind) sure(i int, key string) bool {
	s, ok := b.all[i].(Sure)
	return !ok || s.Sure(key)
}

// info returns the data that the tiers on this machine have of a value.
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

// delete deletes the key in all tiers, and reports whether one had it.
func (b *behind) delete(key string, r Reach) (had bool) {
	for _, t := range b.within(r) {
		had = t.Delete(key) || had
	}
	return had
}

// put offers the value to all tiers, with a lease for each, and returns the channels to wait for.
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
