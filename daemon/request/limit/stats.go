package limit

import "time"

// Stats are a key's limits and what it has taken.
type Stats struct {
	Key      string
	Limits   Limits
	InFlight int // at this router
	Used     Used
	Requests Balance
	Tokens   Balance
}

// Stats returns the figures of all keys with limits, by their names.
func (b *Book) Stats(at time.Time) []Stats {
	keys := b.list()
	all := make([]Stats, len(keys))
	for i, k := range keys {
		k.mu.Lock()
		all[i] = Stats{Key: k.name, Limits: k.limits, InFlight: k.inFlight, Used: k.used, Requests: k.requests.left(at),
			Tokens: k.tokens.left(at)}
		k.mu.Unlock()
	}
	return all
}
