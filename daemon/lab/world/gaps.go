package world

import (
	"math"
	"time"
)

// gaps counts the times between tokens, in buckets each 2 % wider than the one below: a run has millions.
type gaps struct {
	buckets [1024]int64 // the last one begins at 5 days
	count   int64
}

// gapsFrom is where the first bucket ends, and gapsBy what each is wider.
const (
	gapsFrom = 1e-3 // seconds
	gapsBy   = 1.02
)

func (g *gaps) add(d time.Duration) {
	i := math.Ceil(math.Log(d.Seconds()/gapsFrom) / math.Log(gapsBy))
	g.buckets[int(max(0, min(i, float64(len(g.buckets)-1))))]++
	g.count++
}

// quantile returns the end of the bucket in which the quantile lies, 0 if nothing was added.
func (g *gaps) quantile(q float64) float64 {
	below := int64(0)
	for i, n := range g.buckets {
		below += n
		if n > 0 && float64(below) >= q*float64(g.count) {
			return gapsFrom * math.Pow(gapsBy, float64(i))
		}
	}
	return 0
}
