package peers

import "time"

// Stats is what an operator is told of the history that routers share.
type Stats struct {
	On        bool
	Connected bool
	Since     time.Time // when Redis was lost; zero: it is there
	Losses    uint64    // times that it was
	Err       string    // of the newest call that failed
	Pools     []PoolStats
}

// PoolStats is the same of one pool.
type PoolStats struct {
	Name    string
	Told    TellerStats
	Heard   HearerStats
	Routers []Router
	Replay  Progress
	Chains  int // hashes of chains that messages can name
}
