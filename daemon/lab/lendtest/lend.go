// Package lendtest does in Go what package ledger has Redis do, for the tests of both sides of it.
package lendtest

// Lend returns what is lent to a router of one limit, in answer to its message that it has taken some of it. others is
// what the other routers hold, each the larger of what it has taken and what is lent to it. wants is whether one of
// them wants more. The rule stands at package ledger's script.
func Lend(limit, taken, others float64, wants bool, routers int) (lent float64) {
	n := float64(routers)
	switch free := limit - taken - others; {
	case free > 0:
		lent = taken + free/n
	case taken > 0:
		lent = taken * limit / (taken + others)
	}
	if wants && taken > limit/n {
		lent = min(lent, limit/n)
	}
	return lent
}
