package engine

import "time"

// ChangeKind is what a Change does.
type ChangeKind uint8

// The kinds of changes.
const (
	Stored  ChangeKind = iota // blocks can be found from now on
	Removed                   // they no longer can
	Cleared                   // nothing can be found any more on the GPU
)

// Medium is where a Change happened.
type Medium uint8

// The media of a worker.
const (
	OnGPU Medium = iota
	OnCPU
)

// Change is one change of what a worker's caches hold, as vLLM's KV events report it. One Removed on the GPU is one
// physical block, so a hash that was stored twice is removed twice.
type Change struct {
	Kind   ChangeKind
	Medium Medium
	// Hashes are those of the blocks, in order. A chunk of a CPU tier has the hash of its last block.
	Hashes []uint64
	// Parent is the hash of the block or chunk before the first. At the start of a prompt there is none.
	Parent    uint64
	HasParent bool
	// Tokens are those of all the blocks of a Stored.
	Tokens []uint32
	// Salt and Session are those of the sequence. A Removed has none.
	Salt    string
	Session string
	// Tiers is true if a Cleared has emptied the CPU tier too.
	Tiers bool
}

// Batch is what changed in one step. Its changes stand in the order in which they happened.
type Batch struct {
	At      time.Duration // end of the step
	Changes []Change
}

// changeLog gathers changes into batches.
type changeLog struct {
	on     bool
	open   []Change // since the end of the last step
	sealed []Batch  // that nobody has taken
}

// stored records that blocks [from, to) of a sequence were entered.
func (l *changeLog) stored(q *Sequence, from, to int) {
	if l.on && from < to {
		c := q.change(from, to, 1)
		l.open = append(l.open, c)
	}
}

// saved records that chunks [from, to) of so many blocks were stored in the CPU tier.
func (l *changeLog) saved(q *Sequence, from, to, chunk int) {
	if l.on && from < to {
		c := q.change(from, to, chunk)
		c.Medium = OnCPU
		l.open = append(l.open, c)
	}
}

// removed records that blocks or chunks can no longer be found.
func (l *changeLog) removed(where Medium, hashes ...uint64) {
	if l.on && len(hashes) > 0 {
		l.open = append(l.open, Change{Kind: Removed, Medium: where, Hashes: hashes})
	}
}

// cleared records that all was forgotten. As in vLLM it goes out with the next step.
func (l *changeLog) cleared(tiers bool) {
	if l.on {
		l.open = append(l.open, Change{Kind: Cleared, Tiers: tiers})
	}
}

// seal makes a batch of what changed up to the end of a step.
func (l *changeLog) seal(at time.Duration) {
	if len(l.open) > 0 {
		l.sealed = append(l.sealed, Batch{At: at, Changes: l.open})
		l.open = nil
	}
}

// take returns the batches since the last call.
func (l *changeLog) take() []Batch {
	b := l.sealed
	l.sealed = nil
	return b
}

// change returns the Stored of chunks [from, to), each of so many blocks.
func (q *Sequence) change(from, to, chunk int) Change {
	c := Change{Salt: q.salt, Session: q.Session, HasParent: from > 0}
	if from > 0 {
		c.Parent = q.hashes[from*chunk-1]
	}
	for k := from; k < to; k++ {
		c.Hashes = append(c.Hashes, q.hashes[(k+1)*chunk-1])
	}
	size := chunk * q.blockSize
	c.Tokens = make([]uint32, 0, (to-from)*size)
	for i := from * size; i < to*size; i++ {
		c.Tokens = append(c.Tokens, q.token(i))
	}
	return c
}
