package peers

import "time"

// Session is a change of a session's binding: the value that now stands under a key of a kind.
type Session struct {
	Kind  byte
	Key   string
	Value []byte        // empty: the binding is gone
	Life  time.Duration // that is left of the binding
}

// Beat is a router's heartbeat, sent every second.
type Beat struct {
	Name    string  // for people
	Workers []Named // empty: as in the beat before
	flags   byte
	digest  uint64 // of Workers, also where the beat leaves them out
}

// Named is a worker as one router's configuration names it.
type Named struct {
	ID      string
	Key     uint64 // of the ID
	Address uint64 // a hash of its URL
}

// sum is the digest of a list of workers, whatever their order.
func sum(all []Named) (digest uint64) {
	for _, n := range all {
		x := n.Key*0x9E3779B97F4A7C15 ^ n.Address
		x ^= x >> 29
		digest += x * 0xBF58476D1CE4E5B9
	}
	return digest
}
