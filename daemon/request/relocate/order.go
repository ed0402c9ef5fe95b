package relocate

import (
	"cmp"
	"slices"
	"time"
)

const (
	// usual is the gap between two turns of a conversation that has had one turn: an agent's tools take some seconds, a
	// person reads for a minute.
	usual = 20 * time.Second

	// least is the shortest gap that counts: an agent whose tools took milliseconds so far may call a slower one.
	least = 5 * time.Second

	// stale is the silence, in gaps of the conversation, after which it counts as ended. If gaps are distributed
	// exponentially, one conversation of 55 continues after that.
	stale = 4
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

// due returns when the next turn is expected.
func (t *Talk) due() time.Time { return t.Last.Add(cmp.Or(t.Gap, usual)) }

// Order sorts conversations, of which talk returns what is known, by when their next turns are expected, and leaves out
// those that have probably ended. A conversation with one turn so far goes behind those that have gone on before.
func Order[T any](all []T, talk func(T) *Talk, now time.Time) []T {
	all = slices.DeleteFunc(all, func(x T) bool { return talk(x).silence(now) > stale })
	slices.SortStableFunc(all, func(x, y T) int {
		a, b := talk(x), talk(y)
		return cmp.Or(cmp.Compare(single(a), single(b)), a.due().Compare(b.due()))
	})
	return all
}

func single(t *Talk) int {
	if t.Gap == 0 {
		return 1
	}
	return 0
}
