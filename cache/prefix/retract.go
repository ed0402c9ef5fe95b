package prefix

// Enter is Touch for a chain that the worker was sent and may yet refuse. It returns how many leading blocks the worker
// held before, and when it was entered, for Retract.
func (n *Namespace) Enter(slot uint32, chain []uint64) (held uint32, at int64) {
	at = n.index.now()
	return uint32(n.touch(slot, chain, at).found), at
}

// Retract takes back what Enter added to the held blocks: the worker has not computed the chain. It leaves a block that
// was touched after at, and the blocks before it: another request has made the worker compute them, or is about to.
func (n *Namespace) Retract(slot uint32, chain []uint64, held uint32, at int64) {
	n.forest.mu.Lock()
	defer n.forest.mu.Unlock()
	if n.gone || int(slot) >= len(n.forest.workers) {
		return
	}
	n.forest.retract(&n.root, slot, chain, int(held), at)
}
