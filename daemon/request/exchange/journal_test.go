package exchange

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
)

// tally is a Meter that writes down what it counts.
type tally struct {
	mu      sync.Mutex // guards counted
	counted []string
}

func (m *tally) note(what string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counted = append(m.counted, what+fmt.Sprint(args...))
}
func (m *tally) Arrived(*message.Seen) {}
func (m *tally) Picked(*message.Seen)  { m.note("picked") }
func (m *tally) Refused(_ *message.Seen, f message.Fault, _ int, _ time.Duration) {
	m.note("refused ", f.Code)
}
func (m *tally) SessionRefused(pool, code string)        { m.note("session ", pool, " ", code) }
func (m *tally) Placed(*message.Seen, time.Duration)     { m.note("placed") }
func (m *tally) Prefilled(_ string, r journal.Prefilled) { m.note("prefill ", string(r)) }
func (m *tally) Retried(pool, reason string)             { m.note("retried ", pool, " ", reason) }
func (m *tally) Hinted(string, route.HintResult)         {}

func (m *tally) Continued(pool string, r journal.Continuation) {
	m.note("continued ", pool, " ", string(r))
}
func (m *tally) FellBack(model, to, reason string)        { m.note("fell ", model, " ", to, " ", reason) }
func (m *tally) Foreign(pool, worker string)              { m.note("foreign ", pool, " ", worker) }
func (m *tally) Waited(s *message.Seen, w journal.Waited) { m.note("waited ", s.Pool, " ", w.Dropped) }
func (m *tally) Shed(pool, reason string)                 { m.note("shed ", pool, " ", reason) }
func (m *tally) FirstByte(*message.Seen)                  { m.note("first byte") }
func (m *tally) Ended(*message.Seen, journal.End)         { m.note("ended") }

// recorded returns a journal, and functions that return what it has logged (without the time) and counted since.
func recorded() (j *journal.Journal, logged, counted func() string) {
	var b bytes.Buffer
	m := &tally{}
	j = &journal.Journal{Meter: m, Log: slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))}
	logged = func() string {
		defer b.Reset()
		return b.String()
	}
	counted = func() string {
		defer func() { m.counted = nil }()
		return strings.Join(m.counted, ", ")
	}
	return j, logged, counted
}

func TestJournalOfSteps(t *testing.T) {
	j, logged, counted := recorded()
	in, p := inbound("POST", "/v1/chat/completions", ""), &epoch.Pool{Pool: &route.Pool{Name: "p"}}
	in.ID = "id-1"
	_, workers, _ := newScene(t, []string{"refuse"}, []string{"refuse"}).pool.Workers.Snapshot(worker.Query{At: time.Now()}, nil, nil)
	a, b := workers[0], workers[1]
	f := func(from journal.Step, wantLog, wantCount string, retries int) {
		t.Helper()
		j.PassedOn(in, p, from, b)
		if got := logged(); got != wantLog {
			t.Errorf("%+v: logged %q; want %q", from, got, wantLog)
		}
		if got := counted(); got != wantCount || int(in.Seen.Retries) != retries || len(in.Seen.Attempts) != retries {
			t.Errorf("%+v: counted %q, %+v; want %q, %d", from, got, in.Seen.Attempts, wantCount, retries)
		}
	}
	f(journal.Step{}, "", "", 0)
	f(journal.Step{Reason: journal.Connect, Worker: a},
		"level=INFO msg=\"request goes to the next worker\" pool=p id=id-1 worker=w0 reason=connect next=w1\n", "retried p connect", 1)
	f(journal.Step{Reason: journal.NoDescriptor, Worker: a}, "", "retried p no_descriptor", 2) // that has its own line
	j.NobodyLeft(in, p, journal.Step{}, 0)
	j.NobodyLeft(in, p, journal.Step{Reason: journal.NoDescriptor, Worker: a}, 1)
	if got := logged(); got != "" {
		t.Errorf("nobody is left, of no worker: %q", got)
	}
	j.NobodyLeft(in, p, journal.Step{Reason: journal.Late, Worker: a}, 2)
	if got := logged(); got != "level=WARN msg=\"no worker is left for the request: its client gets an error\" pool=p reason=late id=id-1"+
		" worker=w0 tried=2\n" {
		t.Errorf("nobody is left: %q", got)
	}
	j.NobodyLeft(in, p, journal.Step{Reason: journal.Late, Worker: b}, 2) // counted, and logged when it is over
	if got := logged(); got != "" {
		t.Errorf("nobody is left once more: %q", got)
	}
	j.GaveUp(in, p, journal.Step{}, 0)
	j.GaveUp(in, p, journal.Step{Reason: journal.Timeout, Worker: a}, 1)
	if got := logged(); got != "level=WARN msg=\"the request is sent to no other worker: its client gets an error\" pool=p"+
		" reason=timeout id=id-1 worker=w0 tried=1\n" {
		t.Errorf("given up: %q", got)
	}
}

func TestJournalOfRefusals(t *testing.T) {
	j, logged, counted := recorded()
	in := inbound("POST", "/invocations", "")
	in.ID = "id-1"
	s := Server{journal: j}
	out := s.RefuseSession(in, message.FaultSessionBody)
	if out.Status != 400 || in.Seen.End != "session_malformed" || counted() != "session  session_malformed" ||
		logged() != "level=INFO msg=\"session refused\" id=id-1 pool=\"\" reason=session_malformed path=/invocations\n" {
		t.Errorf("%+v, %q", out, in.Seen.End)
	}
	for range 3 {
		j.NoDescriptor(in, nil)
	}
	if n := strings.Count(logged(), "\n"); n < 1 || n > 2 { // two if the second ended meanwhile
		t.Errorf("%d lines about descriptors", n)
	}
	in.Seen.Fallback = "decline" // that is no failure
	j.FailedStrategy(in, nil, nil, route.Chosen)
	if got := logged(); got != "" {
		t.Errorf("a module that declines: %q", got)
	}
}
