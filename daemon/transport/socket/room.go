package socket

// Room is memory for what a read gives. Its owner needs none of it while a read waits.
type Room interface {
	// Take returns the memory, the same until Drop.
	Take() []byte
	// Drop is called while the memory holds nothing: a later Take may return another.
	Drop()
}

// Given is a Room of memory that its owner has anyway.
type Given []byte

// Take returns the memory.
func (g *Given) Take() []byte { return *g }

// Drop does nothing.
func (g *Given) Drop() {}
