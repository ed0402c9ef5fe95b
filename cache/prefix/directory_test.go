package prefix

import (
	"fmt"
	"testing"
)

// TestSaltsGiveWayToEachOther: whoever makes up thousands of names takes nothing from those of which workers hold much,
// and a name that has just come keeps its place until its first blocks are there.
func TestSaltsGiveWayToEachOther(t *testing.T) {
	x := New(Config{Workers: 2, MaxNamespaces: 64})
	long := chained([]byte("a prompt of some length"))
	for i := range 20 {
		x.Namespace(fmt.Sprint("tenant", i)).Touch(uint32(i%2), long)
	}
	for i := range 5000 {
		salted := x.Namespace(fmt.Sprint("salt", i))
		for range 3 { // others come between its look-up and its first blocks
			x.Namespace(fmt.Sprint("another", i))
		}
		salted.Touch(0, chained([]byte("hi")))
		if i%500 == 0 && salted.depth(0, chained([]byte("hi"))) != 2 {
			t.Fatalf("the salt %d was dropped before its first blocks came", i)
		}
	}
	for i := range 20 {
		if got := x.Namespace(fmt.Sprint("tenant", i)).depth(uint32(i%2), long); got != len(long) {
			t.Errorf("tenant %d: %d of %d blocks are known", i, got, len(long))
		}
	}
	sound(t, x)
}
