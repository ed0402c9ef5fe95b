package exchange

import (
	"io"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
)

// panicking is a Meter that panics at the first byte of an answer, or at its end.
type panicking struct {
	tally
	atEnd bool
}

func (m *panicking) FirstByte(*message.Seen) {
	if !m.atEnd {
		panic("at the first byte")
	}
}

func (m *panicking) Ended(*message.Seen, journal.End) { panic("at the end") }

// TestAPanicCountsDown: the worker of a request that makes the daemon panic has none in flight afterwards.
func TestAPanicCountsDown(t *testing.T) {
	f := func(what string, m journal.Meter, use func(s *scene, in *message.Inbound, life *message.Life)) {
		t.Helper()
		s := newScene(t, []string{streamed(role, word, stop, done)})
		s.Server = New(Config{Log: s.journal.Log, Meter: m})
		in := inbound("POST", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[]}`)
		in.Epoch = s.epoch
		var all message.Lives
		life := new(message.Life)
		all.Begin(life)
		defer life.Leave()
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: nothing panicked", what)
				}
			}()
			use(s, in, life)
		}()
		if n := s.pool.Workers.Stats(time.Now())[0].InFlight; n != 0 {
			t.Errorf("%s: %d requests are in flight at the worker", what, n)
		}
	}
	serve := func(s *scene, in *message.Inbound, life *message.Life) { s.Serve(life, in) }
	f("before the answer", &panicking{}, serve)
	f("at its end", &panicking{atEnd: true}, func(s *scene, in *message.Inbound, life *message.Life) {
		_, _ = io.ReadAll(s.Serve(life, in).Stream)
	})
}
