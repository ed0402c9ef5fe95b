package holdings

import "math"

// Tier is where a worker keeps a block.
type Tier uint8

// The tiers of a worker.
const (
	GPU   Tier = iota
	Local      // the worker's own CPU memory or disk: the medium "CPU", LMCache's LocalCPUBackend
)

// Shared is the slot of the pseudo-worker that stands for the shared tier, L2. The tiers of its blocks do not matter.
const Shared uint32 = math.MaxUint32

// Stored is the report that a worker has put blocks into a tier, one physical copy of each.
type Stored struct {
	Adapter   string // the LoRA adapter's name; "" = none. Only read of a store without a parent
	Salt      string // the request's cache_salt; "" = none. Only read of a store without a parent
	Parent    uint64 // the engine's hash of the block before the first one
	HasParent bool   // false = the first one begins the prompt
	// Hashes are the engine's own of each block, opaque. They are the names by which blocks are removed.
	Hashes []uint64
	// Tokens are the ids of all blocks. Empty = the blocks are known by their hashes from another tier, as of vLLM's own
	// offloading to the CPU.
	Tokens    []uint32
	BlockSize int // tokens a block
	Tier      Tier
}

// Stats is what the index knows of one worker, and what it did not take.
type Stats struct {
	Live    bool
	Held    [2]int // blocks, by tier
	Blocks  int    // blocks, in any tier
	Orphans int    // blocks that wait for a parent
	// Counters since the worker came.
	Stored     uint64 // copies entered
	Removed    uint64 // copies removed
	Clears     uint64 // of the writer
	Unknown    uint64 // hashes to be removed that were not there: harmless
	Unplaced   uint64 // blocks without tokens whose hash was not known
	Mismatched uint64 // blocks whose ids do not fit their number and size, or whose size is not their parent's
	Dropped    uint64 // orphans given up for newer ones
	Crowded    uint64 // blocks of too many adapters, salts or block sizes
	Overflows  uint64 // times that it held more than it may, and was cleared
}
