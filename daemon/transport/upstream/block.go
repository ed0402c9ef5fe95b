package upstream

import "sync"

// blockSize is enough for a head and a small body together. An exchange holds none of it while it waits for an answer,
// nor once the caller has read what came with the head.
const blockSize = 4 << 10

var blocks = sync.Pool{New: func() any { return new([blockSize]byte) }}

// start is the first bytes of an answer. The goroutine that has it gives block back to blocks.
type start struct {
	block *[blockSize]byte // nil = nothing
	n     int
}
