package meter

// block is an open block of the function that is scanned.
type block struct {
	cost  int  // index of what its instructions are added to
	outer bool // a loop: another one is put around it, see scan
}

// nest is the blocks that are open, the function itself first.
type nest []block

// top returns the innermost open block.
func (n nest) top() *block { return &n[len(n)-1] }

// movedLabel returns a label's new number: each outer loop between the branch and its target counts.
func (n nest) movedLabel(label uint32) uint32 {
	moved := label
	for i := range min(int(label), len(n)) {
		if n[len(n)-1-i].outer {
			moved++
		}
	}
	return moved
}
