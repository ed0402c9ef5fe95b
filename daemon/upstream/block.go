package upstream

import "sync"

// blockSize is enough for a head and a small body together. Nothing of it is held while an answer is waited for, nor
// once the caller has read what came with the head.
const blockSize = 4 << 10

var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// start is the first bytes of an answer. Whoever has it gives block back to blocks.
type start struct {
	block *[blockSize]byte // nil = nothing
	n     int
}
