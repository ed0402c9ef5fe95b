package kvevents

// Medium is where a block lies, as the event names it.
type Medium uint8

// The media that are distinguished.
const (
	GPU   Medium = iota
	CPU          // the worker's memory, by vLLM's own offloading
	Disk         // of the worker
	Other        // another: nothing is handed on
)

// String returns the name.
func (m Medium) String() string { return [...]string{"gpu", "cpu", "disk", "other"}[m] }

// mediumOf reads a medium in any case. Releases before 0.10.2 have none, and mean the GPU.
func mediumOf(name []byte) Medium {
	switch {
	case len(name) == 0 || equalFold(name, "gpu"):
		return GPU
	case equalFold(name, "cpu"):
		return CPU
	case equalFold(name, "disk") || equalFold(name, "ssd"):
		return Disk
	}
	return Other
}

// equalFold compares b with lower, which is in lower case.
func equalFold(b []byte, lower string) bool {
	if len(b) != len(lower) {
		return false
	}
	for i, x := range b {
		if 'A' <= x && x <= 'Z' {
			x += 'a' - 'A'
		}
		if x != lower[i] {
			return false
		}
	}
	return true
}

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
	// been stored on the GPU before. In a block whose content is more than its tokens (an image, embeddings) they are
	// replaced by numbers from 1<<31 on, which no tokenizer has: what follows keeps its place, and no prompt of text
	// matches it.
	Tokens []uint32
}

// Sink takes the events of one source in their order, from one goroutine at a time. What it is given is valid during
// the call only.
type Sink interface {
	Store(*Stored)
	Remove(m Medium, hashes []uint64) // one physical block for each hash
	Clear()                           // the worker has dropped everything, or what was handed on before may not hold
}

// Batch is what a message has beside its events.
type Batch struct {
	At      float64 // Unix seconds on the worker's clock
	Rank    int     // data-parallel rank; 0 if the worker has none
	HasRank bool
	Events  int
	Lost    bool // a removal could not be read: what the sink knows of the source may be wrong from here on
}

// Skipped counts events that were read and not handed on, by reason.
type Skipped struct {
	Unknown   uint64 // a tag of a later release
	Remote    uint64 // locality REMOTE: the block is not at this worker
	Medium    uint64 // on a medium that is Other
	Group     uint64 // of a sliding window, a state-space layer, or a second group of full attention
	Shape     uint64 // tokens, hashes and block size do not agree
	External  uint64 // a store that its sender never follows by a removal: LMCache through vLLM's stream
	Oversized uint64 // over maxBlocks or maxTokens
}

// Total is the sum.
func (s *Skipped) Total() uint64 {
	return s.Unknown + s.Remote + s.Medium + s.Group + s.Shape + s.External + s.Oversized
}
