package exchange

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// TestAttemptsKeepTheFaultThatMatters: a full worker, which got no request, does not hide that another one failed.
func TestAttemptsKeepTheFaultThatMatters(t *testing.T) {
	always := func() bool { return true }
	f := func(want message.Fault, failures ...failure) {
		t.Helper()
		var a attempts
		for i := range failures {
			a.after(&failures[i], false, len(failures)-i, always)
		}
		if a.last != want {
			t.Errorf("%+v: the client gets %q; want %q", failures, a.last.Code, want.Code)
		}
	}
	full := failure{reason: journal.Full, grade: route.GradeUnseen, fault: message.FaultFull}
	timeout := failure{reason: journal.Late, fault: message.FaultTimeout}
	unreached := failure{reason: journal.Connect, grade: route.GradeUnseen, fault: message.FaultUpstream}
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
		var a attempts
		lost := failure{reason: r, by: new(worker.Worker)}
		for _, want := range []route.Retry{route.TryNext, route.GiveUp} {
			if got := a.after(&lost, false, 2, func() bool { return true }); got != want {
				t.Errorf("%s: %v; want %v", r, got, want)
			}
			lost.by = new(worker.Worker)
		}
	}
}

// TestLateness: how long a request waits for a connection that is not made in time.
func TestLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := attempts{patience: 3 * time.Second}
		f := func(what string, failed failure, after time.Duration, want route.Lateness) {
			t.Helper()
			time.Sleep(after)
			if got := a.lateness(&failed); got != want {
				t.Errorf("%s: %v; want %v", what, got, want)
			}
		}
		late := failure{late: true}
		f("another failure", failure{}, 0, route.NotLate)
		f("late, long after it", late, time.Minute, route.Late)
		f("a while later", late, 2*time.Second, route.Late)
		f("too long", late, time.Second, route.TooLate)
		f("another failure then", failure{}, 0, route.NotLate)
	})
}
