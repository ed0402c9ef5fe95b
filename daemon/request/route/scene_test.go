package route

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/judge"
	"github.com/warmpath/warmpath/daemon/fleet/watchtest"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/daemon/request/prompt"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

// start is when the pools of tests begin.
var start = time.Unix(1_800_000_000, 0)

// obedient does what a request's max_tokens asks for: 0 declines, so that the host's fallback chooses the fewest in
// flight; 1 to 99 choose that row, counted from 1, for reason 7; 101 to 199 do the same and bind; 998 traps; 999
// rejects. As it declines it says that it binds, which the self-test sees.
const obedient = `(module
  (memory (export "memory") 1)
  (data (i32.const 8) "too many of yours")
  (func (export "warmpath_abi_1_1"))
  (func (export "wp_frame") (param i32) (result i32) i32.const 1024)
  (func (export "wp_pick") (result i64)
    (local $say i32)
    i32.const 1076 i32.load local.set $say
    local.get $say i32.eqz if i64.const 0x0001_0000_ffff_ffff return end
    local.get $say i32.const 998 i32.eq if unreachable end
    local.get $say i32.const 999 i32.eq if
      i32.const 1176 i32.const 403 i32.store
      i32.const 1180 i32.const 90 i32.store
      i32.const 1184 i32.const 8 i32.store
      i32.const 1188 i32.const 17 i32.store
      i64.const 0xffff_fffe return end
    local.get $say i32.const 100 i32.gt_u if
      local.get $say i32.const 101 i32.sub i64.extend_i32_u i64.const 0x0001_0007_0000_0000 i64.or return end
    local.get $say i32.const 1 i32.sub i64.extend_i32_u i64.const 0x0007_0000_0000 i64.or)
)`

// The values of max_tokens for the strategy obedient.
const (
	decline = 0
	first   = 1   // first + i: row i
	bindTo  = 101 // bindTo + i: row i, and bind the session
	trap    = 998
	reject  = 999
)

// shared is the host of all tests, and its one module: to compile it takes longer than a test.
var shared = sync.OnceValues(func() (*host.Host, *host.Strategy) {
	ctx := context.Background()
	h, err := host.New(ctx, host.Config{})
	if err != nil {
		panic(err)
	}
	return h, load(h, "obedient", obedient)
})

func load(h *host.Host, name, wat string, allow ...string) *host.Strategy {
	wasm, err := wasmtest.Assemble(wat)
	if err != nil {
		panic(err)
	}
	s, err := h.Load(context.Background(), name, wasm, host.Options{PickTime: time.Second, Allow: allow})
	if err != nil {
		panic(err)
	}
	return s
}

// scene is a pool with its workers, its store of sessions, and a time that the test moves.
type scene struct {
	*Pool
	t       testing.TB
	store   *store
	conf    worker.Config
	watched watchtest.Numbers
	names   []string
	now     time.Time
}

const maxInFlight = 4

// newScene makes a pool of the workers in words, as "a b:down c:busy": each is a name and what became of it (see
// become). All of them are up and equal before that.
func newScene(t testing.TB, words string) *scene {
	t.Helper()
	return sceneOf(t, words, worker.Config{MaxInFlight: maxInFlight})
}

func sceneOf(t testing.TB, words string, c worker.Config) *scene {
	t.Helper()
	_, strategy := shared()
	return sceneBy(t, words, c, strategy)
}

func sceneBy(t testing.TB, words string, c worker.Config, strategy *host.Strategy) *scene {
	t.Helper()
	s := &scene{t: t, store: newStore(), watched: watchtest.Numbers{}, now: start}
	what := map[string]string{}
	for _, word := range strings.Fields(words) {
		name, fate, _ := strings.Cut(word, ":")
		s.names = append(s.names, name)
		what[name] = fate
		c.Workers = append(c.Workers, worker.Spec{ID: name, URL: "http://" + name})
	}
	c.Watcher = s.watched
	s.conf = c
	s.Pool = New(Config{Name: "p", Sessions: session.On(s.store, session.Config{Pool: "p"}), Began: start, Workers: c,
		Reason: func(strategy string, code uint16) string { return fmt.Sprintf("%s says %d", strategy, code) }})
	s.Strategy.Replace(strategy)
	for _, name := range s.names {
		if what[name] != "starting" {
			s.heal(name)
		}
	}
	for _, name := range s.names {
		s.become(name, what[name])
	}
	s.now = s.now.Add(time.Second)
	return s
}

// become puts a worker into the state that a word names.
func (s *scene) become(name, what string) {
	s.t.Helper()
	switch what {
	case "", "starting", "up":
	case "down":
		s.Workers.Dead(s.watched[name], "refused", s.now)
	case "slow": // it came back, and has had the first request of its slow start
		s.become(name, "down")
		s.heal(name)
		s.end(s.begin(name), judge.Answered)
	case "ejected":
		for range 5 {
			s.end(s.begin(name), judge.Failed)
		}
	case "leaving":
		for range 3 {
			s.end(s.begin(name), judge.Leaving)
		}
	case "silent":
		s.Workers.Silent(s.watched[name], "no answer", s.now)
		s.Workers.Silent(s.watched[name], "no answer", s.now)
	case "crowded":
		s.end(s.begin(name), judge.Busy)
	case "draining":
		s.Workers.Drain(name, true, s.now)
	case "lacks":
		s.Workers.Listed(s.watched[name], []string{"other"}, nil)
	case "lists":
		s.Workers.Listed(s.watched[name], []string{"m"}, nil)
	case "busy":
		s.begin(name)
	case "queued": // with some ten seconds of work
		d := worker.Dispatch{PromptTokens: 100_000}
		if !s.Workers.Begin(new(worker.Ticket), s.worker(name), d, s.now) {
			s.t.Fatalf("worker %q takes no request", name)
		}
	case "full":
		for range maxInFlight {
			s.begin(name)
		}
	default:
		s.t.Fatalf("nothing is known of becoming %q", what)
	}
}

func (s *scene) heal(name string) { s.Workers.Healthy(s.watched[name], s.now) }

// worker returns the worker of that name, whatever its state.
func (s *scene) worker(name string) *worker.Worker {
	s.t.Helper()
	_, ws, _ := s.Workers.Snapshot(worker.Query{Again: true, At: s.now}, nil, nil)
	for _, w := range ws {
		if w.ID() == name {
			return w
		}
	}
	s.t.Fatalf("worker %q takes nothing", name)
	return nil
}

// begin sends a request of somebody else to a worker.
func (s *scene) begin(name string) *worker.Ticket {
	s.t.Helper()
	ticket := new(worker.Ticket)
	if !s.Workers.Begin(ticket, s.worker(name), worker.Dispatch{PromptTokens: 10, Est: 0.001}, s.now) {
		s.t.Fatalf("worker %q takes no request", name)
	}
	return ticket
}

func (s *scene) end(ticket *worker.Ticket, kind judge.Kind) {
	ticket.End(s.now, judge.Outcome{Kind: kind})
}

// ask is a request with a completion prompt, which obedient understands. say is its max_tokens; claim is its session.
func (s *scene) ask(say int, claim Claim) Ask {
	return s.asking(completion(say, "Say something."), claim)
}

func (s *scene) asking(r *prompt.Request, claim Claim) Ask {
	return Ask{Prompt: r, Claim: claim, At: s.now}
}

// choose chooses for a request.
func (s *scene) choose(a Ask) (*Choice, Verdict) {
	c := new(Choice)
	v := s.Choose(c, &a)
	for i := 0; i < 1000 && c.result.Fallback == "busy"; i++ { // a trap of another test has its instance made anew
		time.Sleep(time.Millisecond)
		c.Release()
		c = new(Choice)
		v = s.Choose(c, &a)
	}
	return c, v
}

// chosen chooses, and fails the test on any other verdict.
func (s *scene) chosen(a Ask) *Choice {
	s.t.Helper()
	c, v := s.choose(a)
	if v != Chosen {
		s.t.Fatalf("%v; want a choice", v)
	}
	return c
}

// served chooses for a request, sends it to the first of the order and ends it well.
func (s *scene) served(a Ask) *Choice {
	s.t.Helper()
	c := s.chosen(a)
	c.Bind()
	to, _ := c.Next(s.now)
	t := s.send(c, to)
	c.Answered(to.Worker, true)
	t.End(&judge.Outcome{Kind: judge.Answered}, End{Whole: true, Status: 200, At: s.now})
	return c
}

func (s *scene) send(c *Choice, to Target) *Trip {
	s.t.Helper()
	t := new(Trip)
	if !c.Send(t, to, nil, s.now) {
		s.t.Fatalf("worker %q takes no request", to.Worker.ID())
	}
	return t
}

// lives returns the worker of a session, or why there is none.
func (s *scene) lives(n session.Name) string {
	found, status := s.Sessions.Peek(n, s.now)
	if status != session.Found {
		return status.String()
	}
	return found.Worker
}

// orderOf names the workers that a choice has in its order, the first one first.
func orderOf(c *Choice) string {
	var names []string
	for _, i := range c.order.rows {
		names = append(names, c.fleet.workers[i].ID())
	}
	return strings.Join(names, " ")
}

// rest names the workers that Next still gives, those of the second look after a bar.
func rest(c *Choice, at time.Time) string {
	var names []string
	for {
		again := c.Left() == 0 && c.MayWiden(at)
		to, ok := c.Next(at)
		if !ok {
			return strings.Join(names, " ")
		}
		if again {
			names = append(names, "|")
		}
		names = append(names, to.Worker.ID())
	}
}

// completion is a request for a completion of some texts.
func completion(maxTokens int, texts ...string) *prompt.Request {
	body := fmt.Sprintf(`{"model":"m","max_tokens":%d,"prompt":[%s]}`, maxTokens, quoted(texts))
	return parsed("/v1/completions", body)
}

func quoted(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, fmt.Sprintf("%q", text))
	}
	return strings.Join(all, ",")
}

func parsed(path, body string) *prompt.Request {
	r, err := new(prompt.Parser).Parse(prompt.KindOf("POST", path), []byte(body))
	if err != nil {
		panic(err)
	}
	return r
}

// text is a text of so many blocks of the index; texts with the same beginning share their first blocks.
func text(begin string, blocks int) string {
	return begin + strings.Repeat("x", blocks*prompt.BlockBytes-len(begin))
}

func key(id string) session.Name    { return session.Name{Kind: session.Key, ID: id} }
func opened(id string) session.Name { return session.Name{Kind: session.Opened, ID: id} }
func stored(id string) session.Name { return session.Name{Kind: session.Response, ID: id} }

// The tests stand on these: a fleet in words has the workers that the words name.
func TestTheSceneIsAsTold(t *testing.T) {
	s := newScene(t, "a b:busy c:down d:ejected e:draining f:lacks g:full h:slow i:leaving j:starting k l m n")
	want := map[string]worker.Standing{"a": worker.Ready, "b": worker.Ready, "c": worker.Down, "d": worker.Ejected,
		"e": worker.Ready, "f": worker.Lacking, "g": worker.Full, "h": worker.Ready, "i": worker.Draining,
		"j": worker.Starting, "z": worker.Gone}
	for name, standing := range want {
		if got := s.Workers.Standing(name, "m", nil, s.now); got != standing {
			t.Errorf("%s is %v; want %v", name, got, standing)
		}
	}
	c := s.chosen(s.ask(decline, Claim{}))
	if got := strings.Fields(orderOf(c)); !slices.Equal(got, strings.Fields("a b k l m n")) {
		t.Errorf("candidates %v", got)
	}
	if i := c.fleet.row("b"); c.fleet.frame.Rows[i].InFlight != 1 || c.fleet.frame.Rows[i].State&abi.RowSlowStart != 0 {
		t.Errorf("the busy one's row: %+v", c.fleet.frame.Rows[i])
	}
	if stats := s.Workers.Stats(s.now); stats[7].ID != "h" || !stats[7].SlowStart {
		t.Errorf("h does not begin slowly: %+v", stats[7])
	}
}
