package daemon

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/pair"
)

// The moments of a request in a pool of pairs. At atFree its client has left while the prompt was computed, and a decoder
// reads the KV for nobody.
const (
	atUnsent = "before the leg"
	atSent   = "the leg is sent"
	atHead   = "the leg's header came"
	atDone   = "the leg is answered"
	atTold   = "the decoder is asked"
	atLoaded = "the decoder has the KV"
	atFirst  = "the first byte came"
	atStream = "in the stream"
	atLast   = "the last byte came"
	atFree   = "the KV is freed"
)

var moments = []string{atUnsent, atSent, atHead, atDone, atTold, atLoaded, atFirst, atStream, atLast, atFree}

// lifeEvent is what happens at a moment.
type lifeEvent struct {
	name string
	to   string // the worker that it happens to: prefiller, decoder; "" = none
	do   func(l *life, w *lifeWorker)
}

var lifeEvents = []lifeEvent{
	{"client leaves", "", func(l *life, _ *lifeWorker) { l.leave() }},
	{"restarts", prefiller, (*life).restart}, {"restarts", decoder, (*life).restart},
	{"dies", prefiller, (*life).die}, {"hangs", prefiller, (*life).hang}, {"freezes", prefiller, (*life).freeze},
	{"says 500", prefiller, says(500)}, {"says 503", prefiller, says(503)},
	{"says 429", prefiller, says(429)}, {"says 529", prefiller, says(529)},
	{"is removed", prefiller, (*life).remove}, {"is replaced", prefiller, (*life).replace},
	{"drains", prefiller, (*life).drain},
	{"dies", decoder, (*life).die}, {"hangs", decoder, (*life).hang}, {"freezes", decoder, (*life).freeze},
	{"says 500", decoder, says(500)}, {"says 503", decoder, says(503)},
	{"says 429", decoder, says(429)}, {"says 529", decoder, says(529)},
	{"is removed", decoder, (*life).remove}, {"is replaced", decoder, (*life).replace},
	{"drains", decoder, (*life).drain},
	{"connector changes", "", func(l *life, _ *lifeWorker) { l.reconnect() }},
	{"router stops", "", func(l *life, _ *lifeWorker) { go func() { _ = l.stop() }() }},
}

// TestLifeOfAPair: whatever happens at whatever moment of a request's life at a prefiller and a decoder, with two of each
// or one, the client has a whole answer, or a clear end where a part of its answer is out. Nobody but the worker at fault is
// blamed, no KV stays at a prefiller, nothing of the request is held, and the next client has its answer.
func TestLifeOfAPair(t *testing.T) {
	t.Parallel()
	places := make(chan struct{}, 8) // more cells at a time leave each too little of the processor to be judged
	var cells sync.WaitGroup
	for x, connector := range pair.Connectors() {
		c, one := pair.Connector(connector), 16
		if c.Pins() {
			one = 4
		}
		for y, at := range slices.Concat(moments, moments) {
			for z, e := range lifeEvents {
				l := &life{at: at, event: e, stream: (y+z)%2 == 0 || at == atStream, lone: y >= len(moments)}
				name := fmt.Sprintf("%s/%s/%s, stream %v, lone %v", c, at, strings.TrimSpace(e.to+" "+e.name), l.stream, l.lone)
				every := one
				if l.lone {
					every *= 4
				}
				switch {
				case at == atUnsent && (e.name == "router stops" || e.name == "connector changes"):
				case at == atFree && (!c.Pins() || e.name == "client leaves"):
				case (x+y/2+z)%every > 0 && !*everyLife && !(c.Within() && l.stream && e.name == "hangs"): // which of the two?
				default:
					cells.Go(func() {
						places <- struct{}{}
						defer func() { <-places }()
						t.Run(name, func(t *testing.T) { l.live(t, c) })
					})
				}
			}
		}
	}
	cells.Wait()
}

// live starts the pair, has its client ask, and judges what is left.
func (l *life) live(t *testing.T, c pair.Connector) {
	l.start(t, c)
	ask := func(ctx context.Context, i int, stream bool) seen {
		return doAs(ctx, t, "POST", "http://"+l.Addr()+"/v1/completions", fmt.Sprintf(`{"model":"sim","stream":%v,`+
			`"stream_options":{"include_usage":true},"max_tokens":9,"prompt":%q}`, stream, longText(fmt.Sprint(i), 2000)))
	}
	var ctx context.Context
	ctx, l.leave = context.WithTimeout(context.Background(), 20*time.Second)
	defer l.leave()
	go l.watch(t.Context())
	if s := ask(ctx, 2, true); s.status != 200 { // by which the router learns how fast they are
		t.Fatal(s.status, s.body, s.err)
	}
	l.armed.Store(true)
	if l.at == atUnsent {
		l.happens()
	}
	began := time.Now()
	s := ask(ctx, 0, l.stream)
	took := time.Since(began)
	if left := l.at == atFree || l.event.name == "client leaves"; !left && !l.ends(s) {
		t.Errorf("after %v: %d %.200s, %v", took, s.status, s.body, s.err)
	} else if !left && took > 8*time.Second {
		t.Errorf("the client has waited %v", took)
	}
	select {
	case <-l.happened:
	case <-time.After(5 * time.Second):
		if l.starved.Load() { // no prefiller is asked then
			break
		}
		t.Errorf("the moment never came: %d %.200s, %v", s.status, s.body, s.err)
	}
	l.blames(t)
	close(l.healed)
	for ended := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		kept, held := l.keptNow(), l.front.Stats()
		places := 0
		for _, p := range l.describe() {
			for _, w := range p.Workers {
				places += w.InFlight
			}
		}
		if l.lone && l.event.to == decoder { // nobody reads what is kept, until its lease is over
			kept = 0
		}
		if kept == 0 && held.Held == (account.Sums{}) && held.InFlight == 0 && places == 0 {
			break
		}
		if waited := time.Since(ended); waited > time.Minute || waited > 5*time.Second && !l.starved.Load() && !l.lone {
			t.Errorf("%d prompts are kept, %d places taken, held: %+v", kept, places, held.Held)
			break
		}
	}
	l.e.mu.Lock()
	for _, why := range l.e.refused {
		if why != "KV of nothing" && why != "KV of " { // that was lost
			t.Error(why)
		}
	}
	l.e.mu.Unlock()
	if l.event.to != "" {
		if s := ask(context.Background(), 1, false); !l.refuses(s) && (s.status != 200 || !strings.Contains(s.body, `"hi"`)) {
			t.Errorf("the next client: %d %.200s, %v", s.status, s.body, s.err)
		}
	}
}

// ends reports whether a client had a whole answer, or a clear end of one of which a part was out.
func (l *life) ends(s seen) bool {
	out := l.event.to == decoder && slices.Contains([]string{atFirst, atStream, atLast}, l.at)
	whole := s.status == 200 && s.err == nil && strings.Contains(s.body, `"hi"`) && !strings.Contains(s.body, `"error"`) &&
		strings.Contains(s.body, "[DONE]") == l.stream
	late := (l.event.to == decoder || l.starved.Load()) && (l.event.name == "hangs" || l.event.name == "freezes")
	return whole || l.refuses(s) || out && (l.event.name == "dies" || l.event.name == "restarts") && (s.err != nil || s.status >= 500) ||
		late && s.status == 504 && strings.Contains(s.body, "worker_timeout")
}

// refuses reports whether a client was told of an error, as the only worker that could have answered is at fault.
func (l *life) refuses(s seen) bool {
	needed := l.event.to == decoder || l.event.to == prefiller && !l.e.connector.Alone()
	return l.lone && needed && s.err == nil && s.status >= 429 && strings.Contains(s.body, `"code":`) &&
		!strings.Contains(s.body, "API key")
}

// blames checks that no worker but the one at fault is.
func (l *life) blames(t *testing.T) {
	for _, p := range l.describe() {
		for _, w := range p.Workers {
			faulty := l.hit.Load() != nil && l.hit.Load().id == w.ID && !strings.HasSuffix(l.event.name, "29")
			faulty = faulty || l.starved.Load() // then a worker that waits for the processor seems to hang
			if w.State != "up" && !faulty {
				t.Errorf("%s is %s (%s), %s", w.ID, w.State, w.Why, w.LastError)
			}
		}
	}
}
