package prompt

import "github.com/zeebo/xxh3"

// fineBytes is the run of text under one hash of a Fine.
const fineBytes = 8

// Fine is one block of a chain, hashed in pieces, to find where two blocks part.
type Fine struct {
	Block  int // 1 + its index in the chain; 0 = none
	pieces [BlockBytes / fineBytes]uint16
}

// read hashes a block in pieces. before is the hash of the chain before it: two prompts that are alike up to there have
// the same.
func (f *Fine) read(block []byte, before uint64) {
	for i := range f.pieces {
		if len(block) < (i+1)*fineBytes { // blocks of token ids are shorter
			return
		}
		f.pieces[i] = uint16(xxh3.HashSeed(block[i*fineBytes:(i+1)*fineBytes], before))
	}
}

// Parts returns how many bytes into the block the first pieces are that differ; -1 if the hashes of all are alike.
func (f *Fine) Parts(other *Fine) int {
	for i := range f.pieces {
		if f.pieces[i] != other.pieces[i] {
			return i * fineBytes
		}
	}
	return -1
}
