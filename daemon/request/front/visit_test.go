package front

import (
	"testing"
	"unsafe"
)

// TestSize holds a visit, which a stream keeps for as long as it lasts, to the largest that the allocator gives 1,024
// bytes with its own word of 8. The next larger one gets 1,152.
func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(visit{}); size > 1016 {
		t.Errorf("a visit has %d bytes; want at most 1016", size)
	}
}
