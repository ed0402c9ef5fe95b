package kvevents

import "github.com/warmpath/warmpath/cache/parts/blocks"

// mediumOf reads a medium in any case. Releases before 0.10.2 have none, and mean the GPU.
func mediumOf(name []byte) blocks.Medium {
	switch {
	case len(name) == 0 || equalFold(name, "gpu"):
		return blocks.GPU
	case equalFold(name, "cpu"):
		return blocks.CPU
	case equalFold(name, "disk") || equalFold(name, "ssd"):
		return blocks.Disk
	}
	return blocks.Other
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

// Sink takes the events of one source in their order, from one goroutine at a time. What it is given is valid during
// the call only.
type Sink interface {
	Store(*blocks.Stored)
	Remove(m blocks.Medium, hashes []uint64) // one physical block for each hash
	// Clear: the worker has dropped everything, or what was handed on before may not hold.
	Clear()
}

// Batch is the part of a message that describes all its events.
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
