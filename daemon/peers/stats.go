package peers

import "time"

// Stats describes the history that routers share, for an operator.
type Stats struct {
	On        bool
	Connected bool
	Since     time.Time // when Redis was lost; zero: it is there
	Losses    uint64    // how often it was lost
	Err       string    // the newest call that failed
	Pools     []PoolStats
}

// PoolStats describes the history of one pool.
type PoolStats struct {
	Name     string
	Sent     SenderStats
	Received ReceiverStats
	Routers  []Router
	Replay   Progress
	Chains   int // hashes of the chains that messages can name
}
