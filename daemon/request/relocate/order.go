package relocate

import (
	"cmp"
	"math"
	"slices"
	"time"
)

const (
	// usual is the gap between two turns of a conversation that has had one turn: an agent's tools take some seconds, a
	// person reads for a minute.
	usual = 20 * time.Second

	// least is the shortest gap that counts: an agent whose tools took milliseconds so far may call a slower one.
	least = 10 * time.Second

	// ends is the share of turns after which a conversation does not go on.
	ends = .1

	// probable is the probability of a next turn from which on a conversation is moved.
	probable = .82

	// ended is the probability below which a conversation is given up. Between that and probable it is not moved, and may
	// have its next turn where it is.
	ended = .05
)

// Talk is what Order needs to know of a conversation.
type Talk struct {
	Last time.Time     // when the worker answered its last turn
	Gap  time.Duration // the mean between its turns; 0 = it has had one
}

// silence returns for how many of its gaps the conversation has been silent.
func (t *Talk) silence(now time.Time) float64 {
	return now.Sub(t.Last).Seconds() / max(cmp.Or(t.Gap, usual), least).Seconds()
}

// GoesOn returns the probability that the conversation has a next turn, if the gaps are distributed exponentially.
func (t *Talk) GoesOn(now time.Time) float64 {
	silent := (1 - ends) * math.Exp(-t.silence(now))
	return silent / (silent + ends)
}

// Order sorts conversations, of which talk returns what is known, by the probability of a next turn, and leaves out
// those that have ended.
func Order[T any](all []T, talk func(T) *Talk, now time.Time) []T {
	all = slices.DeleteFunc(all, func(x T) bool { return talk(x).GoesOn(now) < ended })
	slices.SortStableFunc(all, func(x, y T) int { return cmp.Compare(talk(y).GoesOn(now), talk(x).GoesOn(now)) })
	return all
}
