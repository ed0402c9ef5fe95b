package chunks

import (
	"fmt"
	"sync"
	"testing"
)

// TestHammer: puts of several models and questions at once give the estimate of the same puts one after another.
func TestHammer(t *testing.T) {
	one, many := NewMeter(1<<40, 256), NewMeter(1<<40, 256)
	put := func(m *Meter, g, i int) {
		m.Put(fmt.Sprintf("m%d@1@0@%x@half", g%2, i), int64(g%2+1)*(4<<20), nil)
	}
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 500 {
				put(many, g, i)
				many.Estimate(1 << 30)
			}
		})
		for i := range 500 {
			put(one, g, i)
		}
	}
	all.Wait()
	if got, want := many.Estimate(1<<30), one.Estimate(1<<30); !within(float64(got.Tokens), float64(want.Tokens)) || got.Tokens == 0 {
		t.Errorf("%+v; one after another %+v", got, want)
	}
}
