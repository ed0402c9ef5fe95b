package engine

// Release frees the blocks that an ended sequence has kept, and returns how many these were. They stay findable in the
// cache until others need them. A second call frees nothing.
func (e *Engine) Release(q *Sequence) int {
	n := len(q.blocks)
	if q.state != ended || n == 0 {
		return 0
	}
	e.sched.pool.release(q.blocks)
	q.blocks = nil
	e.sched.pinned -= n
	e.sched.step.blocked = false
	return n
}

// Leading returns how many tokens of the sequence are in the leading blocks that have these hashes.
func (q *Sequence) Leading(hashes []uint64) (tokens int) {
	for i := 0; i < min(len(hashes), len(q.hashes)) && hashes[i] == q.hashes[i]; i++ {
		tokens += q.blockSize
	}
	return tokens
}

// Kept returns the numbers of the blocks that an ended sequence keeps.
func (e *Engine) Kept(q *Sequence) []int {
	var list []int
	for _, b := range q.blocks {
		list = append(list, int(b))
	}
	return list
}
