package upstream

// Stats counts what a client did since it was made. Open and Idle are of this moment.
type Stats struct {
	Open     int    // connections, those in use and the idle ones
	Idle     int    // connections waiting for a request
	Dials    uint64 // connections that came about
	Reused   uint64 // requests that began on a pooled connection
	Replaced uint64 // of these, how many found it dead and were sent again on a fresh one
	Canceled uint64 // requests that ended before their answer did, by the context or by Close
}

// Stats returns what the client has done.
func (c *Client) Stats() Stats {
	idle := &c.pool.idle
	idle.mu.Lock()
	waiting := len(idle.conns)
	idle.mu.Unlock()
	n := &c.pool.counts
	return Stats{
		Open: int(n.open.Load()), Idle: waiting, Dials: uint64(n.dials.Load()), Reused: uint64(n.reused.Load()),
		Replaced: uint64(n.replaced.Load()), Canceled: uint64(n.canceled.Load()),
	}
}
