package exchange

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/porttest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/request/account"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
	"github.com/warmpath/warmpath/host"
)

// declining is a strategy that leaves every choice to the host, which takes the worker with the fewest in flight.
var declining = sync.OnceValue(func() *host.Strategy {
	wasm, err := wasmtest.Assemble(`(module
  (memory (export "memory") 1)
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64) i64.const 0xffff_ffff))`)
	if err != nil {
		panic(err)
	}
	h, err := host.New(context.Background(), host.Config{})
	if err != nil {
		panic(err)
	}
	s, err := h.Load(context.Background(), "declining", wasm, host.Options{PickTime: time.Second})
	if err != nil {
		panic(err)
	}
	return s
})

// watched learns the numbers under which a pool's workers take health checks.
type watched struct {
	ids  map[string]uint64
	list func(id uint64) // reads a worker's models; nil = nobody does
}

func (w *watched) Watch(id uint64, url, _ string) { w.ids[url] = id }
func (w *watched) WatchHealth(uint64)             {}
func (w *watched) Unwatch(uint64)                 {}
func (w *watched) CheckSoon(uint64)               {}
func (w *watched) ScrapeSoon(uint64)              {}

func (w *watched) ListSoon(id uint64) {
	if w.list != nil {
		go w.list(id)
	}
}

// scene is a Server with one pool of scripted workers.
type scene struct {
	*Server
	t       *testing.T
	epoch   *epoch.Epoch
	pool    *epoch.Pool
	log     *strings.Builder
	counted *tally
	numbers []uint64 // of the workers, for what a prober reports
	prober  *watched
	books   account.Books // are balanced at the end of the test
}

// newScene makes workers w0, w1 and so on, each of which gives the answers of its script, the last for ever. An
// answer is what is written on the connection, which is then closed.
func newScene(t *testing.T, scripts ...[]string) *scene {
	t.Helper()
	store, err := tier.New(tier.Config{MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	ids, clients := &watched{ids: map[string]uint64{}}, map[string]*upstream.Client{}
	c := worker.Config{Watcher: ids}
	for i, script := range scripts {
		url := scripted(t, script)
		c.Workers = append(c.Workers, worker.Spec{ID: fmt.Sprint("w", i), URL: url})
		if clients[url], err = upstream.New(upstream.Config{URL: url}); err != nil {
			t.Fatal(err)
		}
	}
	s := &scene{t: t, log: new(strings.Builder), counted: new(tally), prober: ids}
	s.pool = &epoch.Pool{Clients: new(epoch.Clients), Patterns: everyModel{}, InvocationPath: "/invocations",
		HeaderTimeout: 5 * time.Second}
	s.pool.Pool = route.New(route.Config{Name: "p", Sessions: session.On(store, session.Config{Pool: "p"}), Began: time.Now(),
		Workers: c, Reason: func(string, uint16) string { return "" }})
	s.pool.Strategy.Replace(declining())
	s.pool.Clients.Set(clients)
	for _, w := range c.Workers {
		s.numbers = append(s.numbers, ids.ids[w.URL])
	}
	for _, id := range ids.ids {
		s.pool.Workers.Healthy(id, time.Now())
	}
	s.epoch = &epoch.Epoch{Pools: []*epoch.Pool{s.pool}}
	t.Cleanup(s.balances)
	s.Server = New(Config{Log: slog.New(slog.NewTextHandler(s.log, nil)), Meter: s.counted})
	return s
}

// balances fails unless all that requests have held is returned. A prefill may outlive its client for a while.
func (s *scene) balances() {
	for end := time.Now().Add(10 * time.Second); s.books.Sums() != (account.Sums{}); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			s.t.Errorf("held at the end: %+v", s.books.Sums())
			return
		}
	}
}

// scripted is a worker that answers by its script. To "refuse" it does not answer: nobody listens at its address.
func scripted(t *testing.T, script []string) (url string) {
	t.Helper()
	if script[0] == "refuse" {
		return "http://" + porttest.Address(t)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for i := 0; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			for part := range strings.SplitSeq(script[min(i, len(script)-1)], pause) {
				_, _ = io.WriteString(c, part)
				time.Sleep(20 * time.Millisecond)
			}
			c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

// whole is an answer of stated length.
func whole(status int, body string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

// pause in a script has the worker wait, so that what comes before it is read alone.
const pause = "|pause|"

// streamed is an answer in events, each one chunk. An event "cut" breaks it off; without one it ends as HTTP should.
func streamed(events ...string) string {
	var b strings.Builder
	b.WriteString("HTTP/1.1 200 x\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
	for _, e := range events {
		switch e {
		case "cut":
			return b.String()
		case pause:
			b.WriteString(pause)
			continue
		}
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(e), e)
	}
	return b.String() + "0\r\n\r\n"
}

// answer is what a client sees.
type answer struct {
	status int
	body   string
	broken bool // the connection does not end cleanly
	by     string
	in     *message.Inbound
	waits  int // of the stream's reads, in which it held no memory
}

// chat asks for a chat completion.
func (s *scene) chat(header ...string) answer {
	s.t.Helper()
	in := inbound("POST", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`, header...)
	return s.ask(in)
}

func (s *scene) ask(in *message.Inbound) answer {
	s.t.Helper()
	in.Epoch, in.ID, in.Account = s.epoch, "id-1", s.books.Open()
	var all message.Lives
	life := new(message.Life)
	all.Begin(life)
	defer life.Leave()
	out := s.Serve(life, in)
	room := &fickle{}
	text, err := room.whole(out)
	in.Account.End(time.Now())
	return answer{status: out.Status, body: text, broken: err != nil, by: in.Seen.Worker, in: in, waits: room.drops}
}

// fickle is a room that loses what is in its memory as soon as that may be lost.
type fickle struct {
	memory []byte
	drops  int
}

func (f *fickle) Take() []byte {
	if f.memory == nil {
		f.memory = make([]byte, 4096)
	}
	return f.memory
}

func (f *fickle) Drop() {
	for i := range f.memory {
		f.memory[i] = '?'
	}
	f.memory = nil
	f.drops++
}

// whole reads an answer to its end as the front does.
func (f *fickle) whole(out *message.Outbound) (string, error) {
	if out.Stream == nil {
		return string(out.Body), nil
	}
	defer out.Stream.Close()
	var text []byte
	for {
		n, err := out.Stream.(interface {
			ReadRoom(room upstream.Room) (int, error)
		}).ReadRoom(f)
		if n > 0 {
			text = append(text, f.Take()[:n]...)
		}
		switch err {
		case nil:
		case io.EOF:
			return string(text), nil
		default:
			return string(text), err
		}
	}
}

// everyModel is the pattern "*".
type everyModel struct{}

func (everyModel) Serves(string) bool      { return true }
func (everyModel) Names(model string) bool { return model == "named" }
