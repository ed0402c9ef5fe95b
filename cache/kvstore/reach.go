package kvstore

// Reach states how far behind the memory a call goes.
type Reach int

const (
	// Everywhere includes all tiers: memory, disk, servers.
	Everywhere Reach = iota
	// Here stays on this machine. A daemon of the same pool calls so: its request is not passed on to a third.
	Here
)
