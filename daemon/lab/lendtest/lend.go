// Package lendtest does in Go what package ledger has Redis do, for the tests of both sides of it.
package lendtest

import "math"

// Told is a router's report of one limit, and the reports of the others that Redis has.
type Told struct {
	Limit   float64
	Taken   float64
	Others  float64 // what they hold, each the larger of what it has taken and what is lent to it
	Wants   bool    // this router wants more
	Wanted  bool    // another one does
	Tokens  bool    // they can be divided, and requests not
	Routers int     // this one too
}

// Lend returns what is lent to the router. The rule stands at package ledger's script.
func Lend(t Told) (lent float64) {
	part := t.Limit / float64(t.Routers)
	switch free := t.Limit - t.Taken - t.Others; {
	case free > 0:
		more := free / float64(t.Routers)
		switch {
		case t.Tokens:
		case t.Wanted && !t.Wants:
			more = math.Floor(more)
		default:
			more = math.Ceil(more)
		}
		lent = t.Taken + min(free, more)
	case t.Taken > 0:
		lent = t.Taken * t.Limit / (t.Taken + t.Others)
	}
	if t.Wanted && t.Taken > part {
		lent = min(lent, part)
	}
	return lent
}
