package attempt

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/admission"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// TestAttemptsKeepTheFaultThatMatters: a full worker, which got no request, does not hide that another one failed.
func TestAttemptsKeepTheFaultThatMatters(t *testing.T) {
	always := func() bool { return true }
	f := func(want message.Fault, failures ...Failure) {
		t.Helper()
		var a History
		for i := range failures {
			a.After(&failures[i], false, len(failures)-i, always)
		}
		if a.Last != want {
			t.Errorf("%+v: the client gets %q; want %q", failures, a.Last.Code, want.Code)
		}
	}
	full := Failure{Reason: journal.Full, Grade: route.GradeUnseen, Fault: message.FaultFull}
	timeout := Failure{Reason: journal.Late, Fault: message.FaultTimeout}
	unreached := Failure{Reason: journal.Connect, Grade: route.GradeUnseen, Fault: message.FaultUpstream}
	f(message.FaultFull, full)
	f(message.FaultFull, full, full)
	f(message.FaultTimeout, timeout, full)
	f(message.FaultTimeout, full, timeout)
	f(message.FaultUpstream, timeout, unreached)
	f(message.FaultFull, unreached, full) // nobody has begun on it
}

// TestADyingWorkerIsALostOne: a worker that ends in words counts with those whose connection broke: two end the request.
func TestADyingWorkerIsALostOne(t *testing.T) {
	for _, r := range []journal.Reason{journal.NoAnswer, journal.Dying} {
		var a History
		lost := Failure{Reason: r, By: new(worker.Worker)}
		for _, want := range []route.Retry{route.TryNext, route.GiveUp} {
			if got := a.After(&lost, false, 2, func() bool { return true }); got != want {
				t.Errorf("%s: %v; want %v", r, got, want)
			}
			lost.By = new(worker.Worker)
		}
	}
}

// TestLateness: how long a request waits for a connection that is not made in time.
func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := History{patience: 3 * time.Second}
		f := func(what string, failed Failure, after time.Duration, want route.Lateness) {
			t.Helper()
			time.Sleep(after)
			if got := a.lateness(&failed); got != want {
				t.Errorf("%s: %v; want %v", what, got, want)
			}
		}
		late := Failure{late: true}
		f("another failure", Failure{}, 0, route.NotLate)
		f("late, long after it", late, time.Minute, route.Late)
		f("a while later", late, 2*time.Second, route.Late)
		f("too long", late, time.Second, route.TooLate)
		f("another failure then", Failure{}, 0, route.NotLate)
	})
}

// TestAMovedRequestGoesBack: a request that leaves a worker for another one, which cannot take it any more, waits where it
// was. A prefill does not: its decoder computes the prompt.
func TestAMovedRequestGoesBack(t *testing.T) {
	for _, c := range []struct {
		op   message.Op
		left int
		want route.Retry
	}{{message.Use, 0, route.TryAgain}, {message.Use, 1, route.TryNext}, {message.Prefilling, 0, route.TryNext}} {
		a := History{req: &admission.Request{Entry: message.Entry{Op: c.op}}}
		if got := a.After(&Failure{Reason: journal.Moved, paid: true}, false, c.left, nil); got != c.want {
			t.Errorf("%v, %d others: %v; want %v", c.op, c.left, got, c.want)
		}
	}
}
