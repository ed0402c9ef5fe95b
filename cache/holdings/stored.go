package holdings

import (
	"math"

	"github.com/warmpath/warmpath/cache/parts/blocks"
)

// The tiers of a worker. What it has on its disk counts as in its memory.
const (
	GPU   = blocks.GPU
	Local = blocks.CPU
)

// Shared is the slot of the pseudo-worker that stands for the shared tier, L2. The tiers of its blocks do not matter.
const Shared uint32 = math.MaxUint32

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
