package host

import "github.com/warmpath/warmpath/sdk/abi"

// HeaderSource gives the request's headers. It is asked only for those that the strategy's Allow lists, by lower-case
// names.
type HeaderSource interface {
	Header(name string) (value string, ok bool)
}

// Prefixes answers a module's questions about who holds what, for the namespace of one request. A worker is its
// Row.Worker, a slot of the pool. The first two are methods of cache/prefix.Namespace as they stand.
type Prefixes interface {
	// Best returns the worker that holds the most leading blocks of chain, of all workers of the pool; 0 blocks if no
	// worker holds any.
	Best(chain []uint64) (worker, blocks uint32)
	// MatchOne returns the leading blocks of chain that the worker holds.
	MatchOne(chain []uint64, worker uint32) uint32
	// Worker returns what is believed of one worker: Key, 0 if it is none, Blocks and TailSecs.
	Worker(worker uint32) abi.Holder
	// Tiers writes the tiers that the worker has to out, the GPU first, and returns their number.
	Tiers(worker uint32, out *[maxTiers]abi.Tier) int
}

// maxTiers is the number of kinds of tiers.
const maxTiers = 3
