package listen

// How many descriptors are kept back from the clients' connections and those to the workers that serve them.
const (
	keptForUs     = 16 // standard streams, pollers, listeners, the access log, a file that a reload reads
	keptPerWorker = 4  // its health check, its metrics, and a new connection of either beside an old one
	askedAtOnce   = 1500
	keptForRedis  = 32 // the pool of the client, and its replacements
	fewestClients = 4  // whatever the limit
)

// Kept counts what needs descriptors besides clients.
type Kept struct {
	Workers []int // of each pool
	Redis   bool
	Doors   int // connections at doors that are neither the clients' nor the operator's
}

// forWorkers returns what checks and KV events need. A router asks 500 workers of a pool a second at most, and a
// connection ends 3 s later on average: of a large pool askedAtOnce workers have those of their checks open at a time,
// and each other one has that of its events.
func (k *Kept) forWorkers() (n int) {
	for _, w := range k.Workers {
		asked := min(w, askedAtOnce)
		n += keptPerWorker*asked + w - asked
	}
	return n
}

// Room divides a limit of open files. It returns how many connections clients can have, each with a descriptor more for
// the worker that answers it, and how many the operator can have. With these bounds, neither can use up the descriptors
// of the other, or those of health checks. The answer may exceed a limit that is too low for anything.
func Room(limit int, k Kept) (clients, admin int) {
	admin = min(max(limit/8, 8), 256)
	rest := limit - admin - keptForUs - k.forWorkers() - k.Doors
	if k.Redis {
		rest -= keptForRedis
	}
	return max(rest/2, fewestClients), admin
}

// Needs returns the limit of open files that so many clients' connections need.
func Needs(clients int, k Kept) int {
	need := 2*clients + keptForUs + k.forWorkers() + k.Doors
	if k.Redis {
		need += keptForRedis
	}
	limit := need + 8
	for { // the operator's share grows with the limit
		if c, _ := Room(limit, k); c >= clients {
			return limit
		}
		limit++
	}
}
