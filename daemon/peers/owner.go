package peers

import "time"

// owner is what a pair needs of the router that it belongs to.
type owner interface {
	// fingerprint returns that of the secret by which hashes are made.
	fingerprint() uint64
	// announce is called when a record has been queued. A lock is held then, so it only gives a hint.
	announce(at time.Time)
	// session takes a change of a session from another router.
	session(s Session)
}

// alone is the owner of a pair without a router: the fingerprint of a secret that never changes.
type alone uint64

func (a alone) fingerprint() uint64 { return uint64(a) }
func (alone) announce(time.Time)    {}
func (alone) session(Session)       {}
