package exchange

import (
	"testing"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
)

// TestAttemptsAfter is the table of what follows a failed attempt, by how much the worker saw of the request and what
// is left of the order, the body and the budget.
func TestAttemptsAfter(t *testing.T) {
	const paid, broke = true, false // whether the budget gives a repeat
	f := func(what string, a attempts, failed failure, consumed bool, left int, budget bool, want verdict, then attempts) {
		t.Helper()
		failed.fault = FaultTimeout
		asked := 0
		pay := func() bool { asked++; return budget }
		if got := a.after(&failed, consumed, left, pay); got != want {
			t.Errorf("%s: %v; want %v", what, got, want)
		}
		then.last = a.last
		if a.begun != then.begun || a.broken != then.broken || a.repeated != then.repeated {
			t.Errorf("%s: it leaves %+v; want %+v", what, a, then)
		}
		free := failed.grade == gradeUnseen || failed.grade == gradeFinal || failed.paid || consumed ||
			then.begun == maxAttempts || then.broken == maxBroken
		if free == (asked > 0) {
			t.Errorf("%s: the budget was asked %d times", what, asked)
		}
	}
	at := func(n int32) attempts { return attempts{begun: n} }
	again := func(n int32) attempts { return attempts{begun: n, repeated: true} }

	f("nothing seen costs nothing", at(0), failure{grade: gradeUnseen}, false, 1, broke, tryNext, at(0))
	f("nothing seen, nobody left: Next takes the second look", at(0), failure{grade: gradeUnseen}, false, 0, broke, tryNext, at(0))
	f("nothing seen, twice before", at(2), failure{grade: gradeUnseen}, false, 1, broke, tryNext, at(2))
	f("nothing seen, but the body is gone", at(0), failure{grade: gradeUnseen}, true, 1, paid, giveUp, at(0))

	f("seen once", at(0), failure{grade: gradeSeen}, false, 1, paid, tryNext, at(1))
	f("seen once, no budget", at(0), failure{grade: gradeSeen}, false, 1, broke, giveUp, at(1))
	f("seen once, nobody left: Next takes the second look", at(0), failure{grade: gradeSeen}, false, 0, paid, tryNext, at(1))
	f("seen once, the body is gone", at(0), failure{grade: gradeSeen}, true, 1, paid, giveUp, at(1))
	f("seen once, paid before", at(0), failure{grade: gradeSeen, paid: true}, false, 1, broke, tryNext, at(1))
	f("seen twice", at(1), failure{grade: gradeSeen}, false, 1, paid, tryNext, at(2))
	f("seen three times", at(2), failure{grade: gradeSeen}, false, 1, paid, giveUp, at(3))

	f("silent, others left", at(0), failure{grade: gradeSilent}, false, 1, paid, tryNext, at(1))
	f("silent, nobody left", at(0), failure{grade: gradeSilent}, false, 0, paid, tryAgain, again(1))
	f("silent, nobody left, no budget", at(0), failure{grade: gradeSilent}, false, 0, broke, giveUp, at(1))
	f("silent, nobody left, the body is gone", at(0), failure{grade: gradeSilent}, true, 0, paid, giveUp, at(1))
	f("silent, nobody left, for the second time", again(1), failure{grade: gradeSilent}, false, 0, paid, tryNext, again(2))
	f("silent, no other may be asked as two have seen it", at(2), failure{grade: gradeSilent}, false, 5, paid, giveUp, at(3))

	late := failure{reason: reasonConnectLate, grade: gradeUnseen}
	f("no connection in time, others left", at(0), late, false, 1, broke, tryNext, at(0))
	f("no connection in time, nobody left", attempts{late: 3}, late, false, 0, broke, tryAgain, at(0))
	f("no connection in time, for the fifth time", attempts{late: 4}, late, false, 0, broke, tryNext, at(0))

	one, other := new(worker.Worker), new(worker.Worker)
	lost := attempts{begun: 1, broken: 1, lost: one}
	f("lost", at(0), failure{reason: reasonNoAnswer, by: one}, false, 1, paid, tryNext, lost)
	f("lost twice by one worker", lost, failure{reason: reasonNoAnswer, by: one}, false, 1, paid, tryNext, attempts{begun: 2, broken: 1})
	f("lost by two", lost, failure{reason: reasonNoAnswer, by: other}, false, 1, paid, giveUp, attempts{begun: 2, broken: 2})
	f("lost, and then one dies", lost, failure{reason: reasonDying, by: other}, false, 1, paid, giveUp, attempts{begun: 2, broken: 2})

	f("final", at(0), failure{grade: gradeFinal}, false, 5, paid, giveUp, at(1))
	f("final, after others", at(1), failure{grade: gradeFinal}, true, 5, paid, giveUp, at(2))
}

// TestAttemptsKeepTheFaultThatMatters: a full worker, which got no request, does not hide that another one failed.
func TestAttemptsKeepTheFaultThatMatters(t *testing.T) {
	always := func() bool { return true }
	f := func(want Fault, failures ...failure) {
		t.Helper()
		var a attempts
		for i := range failures {
			a.after(&failures[i], false, len(failures)-i, always)
		}
		if a.last != want {
			t.Errorf("%+v: the client gets %q; want %q", failures, a.last.Code, want.Code)
		}
	}
	full := failure{reason: reasonFull, grade: gradeUnseen, fault: FaultFull}
	timeout := failure{reason: reasonLate, fault: FaultTimeout}
	unreached := failure{reason: reasonConnect, grade: gradeUnseen, fault: FaultUpstream}
	f(FaultFull, full)
	f(FaultFull, full, full)
	f(FaultTimeout, timeout, full)
	f(FaultTimeout, full, timeout)
	f(FaultUpstream, timeout, unreached)
	f(FaultFull, unreached, full) // nobody has begun on it
}

func TestAttemptsOthersAndFurther(t *testing.T) {
	f := func(begun, left int, widen, others, further bool) {
		t.Helper()
		a := attempts{begun: int32(begun)}
		if got := a.others(left); got != others {
			t.Errorf("%d have seen it, %d left: others is %v", begun, left, got)
		}
		if got := a.further(left, widen); got != further {
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
