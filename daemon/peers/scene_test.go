package peers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/watchtest"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
)

// began is when the pools of tests begin.
var began = time.Unix(1_800_000_000, 0)

// declines leaves every choice to the host's fallback: the longest match, unless it has twice the mean load.
const declines = `(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) i64.const 0xffff_ffff))`

var strategy = sync.OnceValue(func() *host.Strategy {
	h, err := host.New(context.Background(), host.Config{})
	if err != nil {
		panic(err)
	}
	wasm, err := wasmtest.Assemble(declines)
	if err != nil {
		panic(err)
	}
	s, err := h.Load(context.Background(), "declines", wasm, host.Options{PickTime: time.Second})
	if err != nil {
		panic(err)
	}
	return s
})

// clock is the time of a test.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

// newPool makes a pool of workers w0, w1, ... that are up, with a KV cache of so many tokens each.
func newPool(t testing.TB, c *clock, workers, tokens int) *route.Pool {
	t.Helper()
	p, _ := watchedPool(t, c, workers, tokens)
	return p
}

// watchedPool is newPool. It returns the numbers by which the workers' health is reported, by host.
func watchedPool(t testing.TB, c *clock, workers, tokens int) (*route.Pool, watchtest.Numbers) {
	t.Helper()
	store, err := tier.Open(tier.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	watched := watchtest.Numbers{}
	conf := worker.Config{Watcher: watched, SlowStart: 1} // else a choice passes over a worker that came back
	for i := range workers {
		conf.Workers = append(conf.Workers, worker.Spec{ID: fmt.Sprint("w", i), URL: fmt.Sprint("http://w", i), KVTokens: tokens})
	}
	p := route.New(route.Config{Name: "p", Began: began, Clock: c.read, Secret: route.Secret{1}, Workers: conf,
		Sessions: session.On(store, session.Config{Pool: "p"}), Reason: func(string, uint16) string { return "" }})
	p.Strategy.Replace(strategy())
	for _, id := range watched {
		p.Workers.Healthy(id, c.now)
	}
	p.Tick(c.now)
	return p, watched
}

// request is a request of a test that is under way.
type request struct {
	choice route.Choice
	trip   route.Trip
	parsed *prompt.Request
	first  bool
}

// ask makes a completion request of a text.
func ask(t testing.TB, text string, at time.Time) route.Ask {
	t.Helper()
	body := fmt.Sprintf(`{"model":"m","stream":true,"prompt":%q}`, text)
	parsed, err := new(prompt.Parser).Parse(prompt.KindOf("POST", "/v1/completions"), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return route.Ask{Prompt: parsed, At: at}
}

// send routes a completion of a text, and sends it.
func send(t testing.TB, p *route.Pool, text string, at time.Time) *request {
	t.Helper()
	return sendAfter(t, p, text, 0, at)
}

// sendAfter sends a request to the worker that comes after several that have failed it.
func sendAfter(t testing.TB, p *route.Pool, text string, failures int, at time.Time) *request {
	t.Helper()
	a := ask(t, text, at)
	a.Turn = p.Arrive("m", nil, at)
	r := &request{parsed: a.Prompt}
	if v := p.Choose(&r.choice, &a); v != route.Chosen {
		t.Fatalf("%v; want a choice", v)
	}
	defer r.choice.Release()
	for ; ; failures-- {
		to, ok := r.choice.Next(at)
		if !ok || !r.choice.Send(&r.trip, to, nil, at) {
			t.Fatal("nobody takes the request")
		}
		if failures == 0 {
			return r
		}
		r.trip.End(&judge.Outcome{Kind: judge.Canceled}, route.End{At: at})
	}
}

// answer ends a request with a text.
func (r *request) answer(text string, at time.Time) {
	var reply prompt.Reply
	reply.Reset(r.parsed.Kind, false, 0)
	reply.Body([]byte(fmt.Sprintf(`{"choices":[{"index":0,"text":%q,"finish_reason":"stop"}]}`, text)))
	r.trip.End(&judge.Outcome{Kind: judge.Answered}, route.End{Reply: &reply, Whole: true, Status: 200, At: at})
}

// words makes a text of that many blocks with a given beginning. Texts with equal beginnings share their first blocks.
func words(begin string, blocks int) string {
	return (begin + strings.Repeat(begin+".", blocks*prompt.BlockBytes/len(begin)))[:blocks*prompt.BlockBytes]
}
