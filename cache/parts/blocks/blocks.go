// Package blocks defines what a worker reports of the blocks of its KV cache. Package kvevents reads such reports from
// the wire, package holdings keeps them, and neither imports the other.
package blocks

// Medium is where a worker keeps a block, as its event names it.
type Medium uint8

// The media that are distinguished.
const (
	GPU   Medium = iota
	CPU          // the worker's memory: vLLM's own offloading, LMCache's LocalCPUBackend
	Disk         // of the worker
	Other        // another: no view of the worker has it
)

// String returns the name.
func (m Medium) String() string { return [...]string{"gpu", "cpu", "disk", "other"}[m] }

// Stored is one run of physical blocks that a worker has filled. Blocks of the same content are not merged by the
// engine: the same hash stored twice is two blocks, and each has its own removal.
type Stored struct {
	Medium    Medium
	Hashes    []uint64 // the engine's own, opaque: equal only within one process of one worker
	Parent    uint64   // hash of the block before the first
	HasParent bool     // false at the head of a prompt
	BlockSize int      // tokens a block; 0 if Tokens is empty
	Adapter   string   // name of the LoRA adapter; "" = none
	Salt      string   // cache_salt, in the event of the head alone: later ones inherit it through Parent
	Session   string   // label of the request that caused it, from 0.30 on

	// Tokens has BlockSize for each hash, or is empty: blocks offloaded to the CPU come without, with hashes that have
	// been stored on the GPU before. If a block holds more than tokens (an image, embeddings), its tokens are replaced
	// by numbers from 1<<31 on, which no tokenizer has. So the blocks that follow keep their place, and no prompt of
	// text matches the block.
	Tokens []uint32
}
