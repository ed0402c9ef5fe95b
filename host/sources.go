package host

import "github.com/warmpath/warmpath/sdk/abi"

// HeaderSource gives the request's headers. It is asked only for those that the strategy's Allow lists, by lower-case
// names.
type HeaderSource interface {
	Header(name string) (value string, ok bool)
}

// Prefixes answers a module's questions about who holds what, for the namespace of one request. A worker is its
// Row.Worker, a slot of the pool.
type Prefixes interface {
	// Best returns the worker that holds the most leading blocks of chain, of all workers of the pool. Key is 0 if nobody
	// holds any; Row is the caller's to fill.
	Best(chain []uint64) (worker uint32, h abi.Holder)
	// Worker returns what is believed of one worker: Key, Blocks and TailSecs.
	Worker(worker uint32) abi.Holder
	// Match returns the leading blocks of chain that the worker holds.
	Match(chain []uint64, worker uint32) uint32
	// Tiers writes the tiers that the worker has to out, the GPU first, and returns their number.
	Tiers(worker uint32, out *[maxTiers]abi.Tier) int
}

const maxTiers = 3
