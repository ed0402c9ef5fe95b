package queue

import "time"

// Config is how much a queue takes, and in which order it gives turns.
type Config struct {
	MaxRequests int
	MaxBytes    int64         // of Request.Bytes in all
	Starve      time.Duration // after which a key gets a turn before others; 0 = never, and no class keeps room
	ByDeadline  bool          // a flow's nearest deadline comes first, not the request that came first
}

// part returns which part of the bounds so many requests and bytes are.
func (c *Config) part(requests int, bytes int64) float64 {
	return max(float64(requests)/float64(max(1, c.MaxRequests)), float64(bytes)/float64(max(1, c.MaxBytes)))
}
