package kvstore

// Reach is how far behind the memory a call goes.
type Reach int

const (
	// Everywhere is to the end: memory, disk, servers.
	Everywhere Reach = iota
	// Here stays on this machine. A daemon of the same pool asks so: what it asks for is not asked of a third.
	Here
)
