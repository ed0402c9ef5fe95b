package route

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestAttemptsAfter is the table of what follows a failed attempt, by how much the worker saw of the request and what
// is left of the order, the body and the budget.
func TestAttemptsAfter(t *testing.T) {
	const paid, broke = true, false // whether the budget gives a repeat
	f := func(what string, a Attempts, failed Failure, consumed bool, left int, budget bool, want Retry, then Attempts) {
		t.Helper()
		asked := 0
		pay := func() bool { asked++; return budget }
		if got := a.After(failed, consumed, left, pay); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
		if a != then {
			t.Errorf("%s: it leaves %+v; want %+v", what, a, then)
		}
		free := failed.Grade == GradeUnseen || failed.Grade == GradeFinal || failed.Paid || consumed ||
			then.begun == maxAttempts || then.Broken == maxBroken
		if free == (asked > 0) {
			t.Errorf("%s: the budget was asked %d times", what, asked)
		}
	}
	at := func(n int32) Attempts { return Attempts{begun: n} }
	again := func(n int32) Attempts { return Attempts{begun: n, repeated: true} }
	unseen, seen := Failure{Grade: GradeUnseen}, Failure{Grade: GradeSeen}
	refused, final := Failure{Grade: GradeRefused}, Failure{Grade: GradeFinal}

	f("nothing seen costs nothing", at(0), unseen, false, 1, broke, TryNext, at(0))
	f("nothing seen, nobody left: Next takes the second look", at(0), unseen, false, 0, broke, TryNext, at(0))
	f("nothing seen, twice before", at(2), unseen, false, 1, broke, TryNext, at(2))
	f("nothing seen, but the body is gone", at(0), unseen, true, 1, paid, GiveUp, at(0))

	f("seen once", at(0), seen, false, 1, paid, TryNext, at(1))
	f("seen once, no budget", at(0), seen, false, 1, broke, GiveUp, at(1))
	f("seen once, nobody left: Next takes the second look", at(0), seen, false, 0, paid, TryNext, at(1))
	f("seen once, the body is gone", at(0), seen, true, 1, paid, GiveUp, at(1))
	f("seen once, paid before", at(0), Failure{Paid: true}, false, 1, broke, TryNext, at(1))
	f("seen twice", at(1), seen, false, 1, paid, TryNext, at(2))
	f("seen three times", at(2), seen, false, 1, paid, GiveUp, at(3))

	f("refused", at(0), refused, false, 1, paid, TryNext, at(0))
	f("refused, twice before", at(2), refused, false, 1, paid, TryNext, at(2))
	f("refused, no budget", at(0), refused, false, 1, broke, GiveUp, at(0))

	silent := Failure{Grade: GradeSilent}
	f("silent, others left", at(0), silent, false, 1, paid, TryNext, at(1))
	f("silent, nobody left", at(0), silent, false, 0, paid, TryAgain, again(1))
	f("silent, nobody left, no budget", at(0), silent, false, 0, broke, GiveUp, at(1))
	f("silent, nobody left, the body is gone", at(0), silent, true, 0, paid, GiveUp, at(1))
	f("silent, nobody left, for the second time", again(1), silent, false, 0, paid, TryNext, again(2))
	f("silent, no other may be asked as two have seen it", at(2), silent, false, 5, paid, GiveUp, at(3))

	f("final", at(0), final, false, 5, paid, GiveUp, at(1))
	f("final, after others", at(1), final, true, 5, paid, GiveUp, at(2))

	one, two := new(worker.Worker), new(worker.Worker)
	lost := func(begun, broken int32, by *worker.Worker) Attempts {
		return Attempts{begun: begun, Broken: broken, lost: by}
	}
	f("lost", at(0), Failure{Broke: true, By: one}, false, 1, paid, TryNext, lost(1, 1, one))
	f("lost by two", lost(1, 1, one), Failure{Broke: true, By: two}, false, 1, paid, GiveUp, lost(2, 2, two))
	f("lost twice by one", lost(1, 1, one), Failure{Broke: true, By: one}, false, 1, paid, TryNext, lost(2, 1, one))
	f("lost before", Attempts{Broken: 1}, Failure{Broke: true, By: one}, false, 1, paid, GiveUp, lost(1, 2, one))
	f("lost, and another is full", lost(1, 1, one), unseen, false, 1, broke, TryNext, lost(1, 1, one))

	late, tooLate := Failure{Grade: GradeUnseen, Late: Late}, Failure{Grade: GradeUnseen, Late: TooLate}
	f("late, others left", at(0), late, false, 1, broke, TryNext, at(0))
	f("late, nobody left", at(0), late, false, 0, broke, TryAgain, at(0))
	f("late for too long, others left", at(1), tooLate, false, 1, broke, TryNext, at(1))
	f("late for too long, nobody left", at(1), tooLate, false, 0, broke, GiveUp, at(1))
}

func TestAttemptsOthersAndFurther(t *testing.T) {
	f := func(begun, left int, widen, others, further bool) {
		t.Helper()
		a := Attempts{begun: int32(begun)}
		if got := a.Others(left); got != others {
			t.Errorf("%d have seen it, %d left: others is %v", begun, left, got)
		}
		if got := a.Further(left, widen); got != further {
			t.Errorf("%d have seen it, %d left, a second look %v: further is %v", begun, left, widen, got)
		}
	}
	const look, looked, yes, no = true, false, true, false
	f(0, 1, looked, yes, yes)
	f(1, 1, looked, yes, yes)
	f(2, 1, look, no, no) // the one at hand is the third
	f(0, 0, looked, no, no)
	f(0, 0, look, no, yes)
	f(1, 0, look, no, yes)
	f(2, 0, look, no, no)
}
