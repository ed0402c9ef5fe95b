package tier

import "github.com/warmpath/warmpath/cache/parts/bounded"

// tiers is what every part of a store works on: memory, Redis if there is one, and the clock.
type tiers struct {
	clock
	l1   *memory
	l2   *remote                 // nil: none
	wake bounded.Queue[struct{}] // a change did not reach Redis: the healer need not wait for its pulse
	n    counters
}

// shared reports whether Redis is there and answers.
func (t *tiers) shared() bool { return t.l2 != nil && !t.l2.breaker.Open() }

// owing returns what a change owes to Redis if it is made in memory alone.
func (t *tiers) owing(d debt) debt {
	if t.l2 == nil {
		return paid
	}
	return d
}

// wakeHealer makes the healer pay debts now.
func (t *tiers) wakeHealer() { t.wake.Put(struct{}{}) }
