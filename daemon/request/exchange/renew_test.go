package exchange

import (
	"context"
	"testing"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// TestALifeServesAgainUnlessAContextWasMadeOfIt also checks that a late call of the last request does not end the next.
func TestALifeServesAgainUnlessAContextWasMadeOfIt(t *testing.T) {
	var all message.Lives
	var l message.Life
	var h listener
	all.Begin(&l)
	before := l.BeginAttempt()
	l.End(message.ErrClientGone)
	l.Leave()
	if !l.Renew() || l.Err() != nil {
		t.Fatalf("a life that nobody has made a context of serves no second request; it ended for %v", l.Err())
	}
	all.Begin(&l)
	l.Hear(&h)
	l.Interrupt(before)
	l.BeginAttempt()
	l.Interrupt(before)
	if h.told.Load() != 0 {
		t.Error("an attempt of the request before was interrupted in this one")
	}
	l.Forget(&h)
	_, cancel := context.WithCancel(&l)
	cancel()
	l.Leave()
	if l.Renew() {
		t.Error("a context that was made of the life may ask it why it ended, and it serves another request")
	}
}

// TestOnlyAForgottenExchangeServesAgain: an exchange that something may use later is left to the collector.
func TestOnlyAForgottenExchangeServesAgain(t *testing.T) {
	good := []string{whole(200, `{"id":"c","choices":[{"index":0,"message":{"content":"ok"},"finish_reason":"stop"}]}`)}
	for _, c := range []struct {
		name    string
		workers [][]string
		live    bool // the context is a Life
		want    bool
	}{
		{name: "one attempt", workers: [][]string{good}, live: true, want: true},
		{name: "a context of another kind", workers: [][]string{good}},
		{name: "two attempts", workers: [][]string{{whole(503, "no")}, good}, live: true},
		{name: "an error of our own", workers: [][]string{{"refuse"}}, live: true},
		{name: "a stream", workers: [][]string{{streamed("data: a\n\n", "data: [DONE]\n\n")}}, live: true},
	} {
		s := newScene(t, c.workers...)
		in := inbound("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
		in.Epoch, in.ID = s.epoch, "id-1"
		ctx := t.Context()
		var all message.Lives
		life := new(message.Life)
		all.Begin(life)
		if c.live {
			ctx = life
		}
		out := s.Serve(ctx, in)
		if got := out.Memory.(*Exchange).forgotten(); got != c.want {
			t.Errorf("%s: forgotten is %v; want %v", c.name, got, c.want)
		}
		if out.Stream != nil {
			out.Stream.Close()
		}
		out.Release()
		life.Leave()
	}
}
