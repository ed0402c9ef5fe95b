package attempt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// unanswered returns the transport's error about a worker that takes a request and closes without a byte.
func unanswered(t *testing.T) error {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1024))
		c.Close()
	}()
	client, err := upstream.New(upstream.Config{URL: "http://" + l.Addr().String(), ConnectTimeout: time.Second, HeaderTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Do(context.Background(), &upstream.Request{Method: "GET", Path: "/"})
	if !upstream.Unanswered(err) {
		t.Fatalf("%v: the worker is taken to have answered", err)
	}
	return err
}

// TestAttemptDiagnose is the table of the transport's errors: what the client gets, how much the worker saw, and what
// the router learns about it.
func TestAttemptDiagnose(t *testing.T) {
	endedBy := func(cause error) context.Context {
		ctx, cancel := context.WithCancelCause(context.Background())
		cancel(cause)
		return ctx
	}
	f := func(what string, err error, a *Attempt, want Failure, kind judge.Kind) {
		t.Helper()
		if a.ctx == nil {
			a.ctx = context.Background()
		}
		got, o := a.diagnose(err)
		if *got != want || o.Kind != kind {
			t.Errorf("%s: %+v, outcome %v; want %+v, %v", what, *got, o, want, kind)
		}
		if (o.Err == "") != (kind == judge.Canceled) {
			t.Errorf("%s: what is said of the worker is %q", what, o.Err)
		}
	}
	lost := func() *Attempt {
		a := &Attempt{}
		a.given.Store(uint32(worker.Dead))
		return a
	}
	closed, live := io.ErrUnexpectedEOF, &Attempt{}
	dial := func(err error) error { return fmt.Errorf("x: %w", &net.OpError{Op: "dial", Err: err}) }
	late := fmt.Errorf("x: %w", os.ErrDeadlineExceeded)

	notInTime := Failure{Reason: journal.Late, Fault: message.FaultTimeout, paid: true}
	f("late", closed, &Attempt{ctx: endedBy(errLate)}, notInTime, judge.Broken)
	f("late, and the timer's cancel is still to come", errLate, live, notInTime, judge.Broken)
	f("down, by its own context", closed, &Attempt{ctx: endedBy(errDown)}, Failure{Reason: journal.Down, Fault: message.FaultDown}, judge.Broken)
	for why, reason := range map[worker.Loss]journal.Reason{worker.Mute: journal.Moved, worker.Resting: journal.Paused} {
		moved := &Attempt{}
		moved.given.Store(uint32(why))
		f("moved: "+string(reason), closed, moved, Failure{Reason: reason, Fault: message.FaultDown, paid: true}, judge.Canceled)
	}
	f("down, by its life", closed, lost(), Failure{Reason: journal.Down, Fault: message.FaultDown}, judge.Broken)
	f("the client left", closed, &Attempt{ctx: endedBy(message.ErrClientGone)}, Failure{Grade: route.GradeFinal}, judge.Canceled)
	f("the drain is over", closed, &Attempt{ctx: endedBy(message.ErrDraining)}, Failure{Grade: route.GradeFinal}, judge.Canceled)
	gone := lost()
	gone.ctx = endedBy(message.ErrClientGone)
	f("the client left a worker that is down", closed, gone, Failure{Grade: route.GradeFinal}, judge.Canceled)

	f("no request", upstream.ErrRequest, live, Failure{Fault: message.FaultRequest, Grade: route.GradeFinal}, judge.Canceled)
	tail := func(err error) error { return fmt.Errorf("%w: %w", upstream.ErrTail, err) }
	f("a tail too large", tail(message.ErrTooLarge), live, Failure{Fault: message.FaultTooLarge, Grade: route.GradeFinal}, judge.Canceled)
	f("a slow tail", tail(message.ErrSlowBody), live, Failure{Fault: message.FaultSlowBody, Grade: route.GradeFinal}, judge.Canceled)
	f("a tail cut off", tail(io.ErrUnexpectedEOF), live, Failure{Fault: message.FaultFraming, Grade: route.GradeFinal}, judge.Canceled)

	none := Failure{Reason: journal.NoDescriptor, Fault: message.FaultOverload, Grade: route.GradeUnseen}
	f("no descriptor", dial(syscall.EMFILE), live, none, judge.Canceled)
	f("no descriptor in the system", dial(syscall.ENFILE), live, none, judge.Canceled)
	connect := Failure{Reason: journal.Connect, Fault: message.FaultUpstream, Grade: route.GradeUnseen}
	f("refused", dial(syscall.ECONNREFUSED), live, connect, judge.Refused)
	connect.Reason = journal.ConnectLate
	f("no way there", dial(syscall.EHOSTUNREACH), live, connect, judge.Late)
	connect.late = true
	f("no connection in time", dial(os.ErrDeadlineExceeded), live, connect, judge.Late)
	f("no answer in time", late, live, Failure{Reason: journal.Timeout, Fault: message.FaultTimeout, Grade: route.GradeFinal}, judge.Broken)
	f("broke off", closed, live, Failure{Reason: journal.NoAnswer, Fault: message.FaultUpstream}, judge.Broken)
	f("closed without a byte", unanswered(t), live, Failure{Reason: journal.NoAnswer, Fault: message.FaultUpstream, Grade: route.GradeSilent}, judge.Broken)
}

// TestInWords: the words for an error have no address.
func TestInWords(t *testing.T) {
	f := func(err error, want string) {
		t.Helper()
		if got := InWords(err); got != want {
			t.Errorf("%v: %q; want %q", err, got, want)
		}
	}
	f(&net.OpError{Op: "dial", Addr: &net.TCPAddr{}, Err: syscall.ECONNREFUSED}, "cannot be connected to")
	f(fmt.Errorf("x: %w", upstream.ErrStalled), "sent nothing within stream_timeout")
	f(os.ErrDeadlineExceeded, "did not answer within header_timeout")
	f(errors.New("read 10.0.0.1:80"), "closed or reset the connection before the end of its answer")
}

// TestAttemptStopTimer: a deadline that is over cannot be stopped, and ends the attempt alone. If no repeat can be paid
// for, it ends nothing.
func TestAttemptStopTimer(t *testing.T) {
	var a, b, c Attempt
	parent := new(message.Life)
	paid := func() bool { return true }
	a.setContext(parent, true)
	a.limit(time.Hour, paid)
	for range 2 { // the second stop finds none
		if !a.stopTimer() || a.ctx.Err() != nil {
			t.Error("a deadline that is to come was not stopped")
		}
	}
	a.close()
	b.setContext(parent, true)
	b.limit(time.Nanosecond, paid)
	<-b.ctx.Done()
	if b.stopTimer() || message.CauseOf(b.ctx) != errLate || parent.Err() != nil {
		t.Errorf("the deadline: cause %v, and the request's %v", message.CauseOf(b.ctx), parent.Err())
	}
	b.close()
	asked := make(chan struct{})
	c.setContext(parent, true)
	c.limit(time.Nanosecond, func() bool { close(asked); return false })
	<-asked
	if time.Sleep(5 * time.Millisecond); !c.stopTimer() || c.ctx.Err() != nil {
		t.Error("an attempt without a repeat to come was ended")
	}
	c.close()
}

// TestGiveUpEndsItsOwnAttemptAlone: a late GiveUp of an earlier attempt does not end the one under way, nor one that
// waits for its client.
func TestGiveUpEndsItsOwnAttemptAlone(t *testing.T) {
	var first, second Attempt
	life, request := new(message.Life), new(ended)
	first.setContext(life, false)
	second.setContext(life, false)
	life.Hear(request)
	first.GiveUp(worker.Dead)
	if request.told.Load() != 0 || first.given.Load() != uint32(worker.Dead) {
		t.Error("the end of the first attempt reached the second")
	}
	second.waits.Store(forClient)
	second.GiveUp(worker.Dead)
	if request.told.Load() != 0 || second.given.Load() != 0 {
		t.Error("an attempt was given up that waits for its client")
	}
	second.waits.Store(forMore)
	second.GiveUp(worker.Dead)
	second.GiveUp(worker.Dead)
	if request.told.Load() != 1 || second.given.Load() != uint32(worker.Dead) || life.Err() != nil {
		t.Errorf("told %d times; the request's end is %v", request.told.Load(), life.Err())
	}
}

// TestASilentWorkerKeepsWhatNobodyPaysFor: a request is moved from a worker that is only silent if the budget has a
// repeat for it.
func TestASilentWorkerKeepsWhatNobodyPaysFor(t *testing.T) {
	for spent, want := range map[bool]uint32{false: uint32(worker.Mute), true: 0} {
		workers := worker.New(worker.Config{}, time.Now())
		for spent && workers.MayRetry(time.Now()) {
		}
		a := Attempt{payer: workers}
		a.setContext(new(message.Life), false)
		if a.GiveUp(worker.Mute); a.given.Load() != want {
			t.Errorf("spent %v: %d; want %d", spent, a.given.Load(), want)
		}
	}
}

// ended counts the ends of a request that it hears.
type ended struct{ told atomic.Int32 }

func (e *ended) Ended() { e.told.Add(1) }
