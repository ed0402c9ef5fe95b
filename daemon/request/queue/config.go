package queue

import "time"

// Config is how much a queue takes, and in which order it gives turns.
type Config struct {
	MaxRequests int
	MaxBytes    int64         // of Request.Bytes in all
	Starve      time.Duration // waiting time after which a key goes before others; 0 = never, and no class reserves room
	ByDeadline  bool          // a flow's nearest deadline comes first, not the request that came first
}

// part returns the given requests and bytes as a part of the bounds.
func (c *Config) part(requests int, bytes int64) float64 {
	return max(float64(requests)/float64(max(1, c.MaxRequests)), float64(bytes)/float64(max(1, c.MaxBytes)))
}
