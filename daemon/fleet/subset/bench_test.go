package subset

import (
	"fmt"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// BenchmarkChoose is one second of a router that uses 200 of 1,000 workers in four zones, of two kinds.
func BenchmarkChoose(b *testing.B) {
	s := &Subset{Due: make(chan struct{}, 1), Linger: 30 * time.Second}
	in := &Input{Size: 200, Self: "r0", Others: []string{"r1", "r2", "r3"}}
	for i := range 1000 {
		in.Workers = append(in.Workers, worker.Spec{ID: fmt.Sprintf("w%d", i),
			Labels: map[string]string{"zone": fmt.Sprint(i % 4), "kind": fmt.Sprint(i % 2), "pod": fmt.Sprint(i)}})
	}
	now := time.Now()
	for id := range s.Choose(in, now) {
		in.Stats = append(in.Stats, worker.Stats{ID: id, Endpoint: id, State: worker.Ready, Up: true, Models: []string{"sim"}})
	}
	for b.Loop() {
		s.Choose(in, now)
	}
}
