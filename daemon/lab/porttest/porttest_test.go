package porttest

import (
	"runtime"
	"testing"
)

// A port is one test's until that test ends.
func TestHold(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("nothing is held here")
	}
	var first int
	t.Run("holds", func(t *testing.T) {
		first = Row(t, 3)
		for i, port := range []int{first - 1, first, first + 2} {
			if err := hold(t, port, 2); err == nil {
				t.Errorf("row %d of two ports beside or in a row of three was given", i)
			}
		}
	})
	if err := hold(t, first, 3); err != nil {
		t.Errorf("after its test's end: %v", err)
	}
}
