package exchange

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/queue"
	"github.com/warmpath/warmpath/daemon/request/waiting"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// crowd is a scene whose workers take one request each, and hold it until they are told.
type crowd struct {
	*scene
	queue   *waiting.Queue
	came    chan string                               // the user that each request at a worker names, in their order
	free    chan bool                                 // lets one go
	answers func(n int64, w http.ResponseWriter) bool // nil or false: with an answer. n counts them
	n       atomic.Int64
	calm    atomic.Bool // answers is over: workers answer again
}

func newCrowd(t *testing.T, workers int, c waiting.Config) *crowd {
	t.Helper()
	s := newScene(t)
	x := &crowd{scene: s, came: make(chan string, 10_000), free: make(chan bool, 10_000)}
	if c.MaxRequests == 0 {
		c.MaxRequests, c.MaxBytes = 10_000, 1<<30
	}
	x.queue = waiting.New(c)
	s.pool.Queue, s.pool.Limited, s.pool.WaitEmpty = x.queue, true, c.WaitEmpty > 0
	s.pool.Workers.Configure(worker.Config{MaxInFlight: 1, Room: x.queue})
	var specs []worker.Spec
	clients := map[string]*upstream.Client{}
	for i := range workers {
		l := httptest.NewServer(http.HandlerFunc(x.serve))
		t.Cleanup(l.Close)
		t.Cleanup(l.CloseClientConnections)
		specs = append(specs, worker.Spec{ID: fmt.Sprint("w", i), URL: l.URL})
		u, err := upstream.New(upstream.Config{URL: l.URL})
		if err != nil {
			t.Fatal(err)
		}
		clients[l.URL] = u
	}
	s.pool.Clients.Set(clients)
	s.pool.Workers.Update(specs, time.Now())
	x.heal()
	return x
}

// heal has all workers pass a health check.
func (x *crowd) heal() {
	for _, id := range x.prober.ids {
		x.pool.Workers.Healthy(id, time.Now())
	}
}

func (x *crowd) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	_, user, _ := strings.Cut(string(body), `"user":"`)
	user, _, _ = strings.Cut(user, `"`)
	x.came <- user
	select {
	case <-x.free:
	case <-r.Context().Done():
		return
	}
	if x.answers != nil && !x.calm.Load() && x.answers(x.n.Add(1), w) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"id":"x","object":"chat.completion","choices":[]}`)
}

// guest is a client's request under way.
type guest struct {
	in   *message.Inbound
	life *message.Life
	done chan *message.Outbound
}

var alone message.Lives

func (x *crowd) sends(caller *gate.Caller, user string, header ...string) *guest {
	in := inbound("POST", "/v1/chat/completions",
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"user":"`+user+`"}`, header...)
	if caller != nil {
		in.Caller = caller
	}
	in.Epoch, in.ID = x.epoch, "id-"+user
	g := &guest{in: in, life: new(message.Life), done: make(chan *message.Outbound, 1)}
	alone.Begin(g.life)
	go func() {
		out := x.Serve(g.life, in)
		in.Account.End(time.Now())
		if out.Stream == nil {
			g.life.Leave()
		}
		g.done <- out
	}()
	return g
}

func (x *crowd) until(what string, ok func() bool) {
	x.t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(200 * time.Microsecond) {
		if time.Now().After(end) {
			x.t.Fatal(what)
		}
	}
}

// waits has so many requests wait.
func (x *crowd) waits(n int) {
	x.t.Helper()
	x.until(fmt.Sprintf("not %d requests wait", n), func() bool { return x.queue.Depth() == n })
}

// rests checks that nothing is left of any request, and that another one is served at once.
func (x *crowd) rests() {
	x.t.Helper()
	x.waits(0)
	x.until("a request is still counted at a worker", func() bool {
		for _, n := range x.pool.Workers.InFlight() {
			if n != 0 {
				return false
			}
		}
		return true
	})
	x.calm.Store(true)
	last := x.sends(nil, "last")
	x.free <- true
	if out := <-last.done; out.Status != 200 {
		x.t.Errorf("a request after all is over: %d %s", out.Status, out.Body)
	}
}

// serves makes the workers answer all of them, and wants an answer of each.
func (x *crowd) serves(all []*guest) {
	x.t.Helper()
	for range all {
		x.free <- true
	}
	for _, g := range all {
		g.wants(x.t, 200, "")
	}
}

// forgets drops the arrivals that a test has not read, and the answers that no request has taken.
func (x *crowd) forgets() {
	for len(x.free) > 0 {
		<-x.free
	}
	for len(x.came) > 0 {
		<-x.came
	}
}

func (g *guest) wants(t *testing.T, status int, dropped string) {
	t.Helper()
	select {
	case out := <-g.done:
		if got := out.Get(message.HeaderDropped); out.Status != status || got != dropped {
			t.Errorf("%s: %d, dropped %q, %s; want %d, %q", g.in.ID, out.Status, got, out.Body, status, dropped)
		}
		if status == 429 && (out.Get("Retry-After") == "" || !strings.Contains(string(out.Body), `"code":`)) {
			t.Errorf("%s: without Retry-After, or not in OpenAI's shape: %v %s", g.in.ID, out.Header, out.Body)
		}
	case <-time.After(5 * time.Second):
		t.Errorf("%s: no answer", g.in.ID)
	}
}

const long = 30 * time.Second

// A full pool has requests wait, and serves them in their order: the greater priority first, as far as it may be asked
// for.
func TestFullPoolHasRequestsWait(t *testing.T) {
	x := newCrowd(t, 1, waiting.Config{Wait: long})
	first := x.sends(nil, "first")
	<-x.came
	var all []*guest
	for i, header := range [][]string{{}, {"X-Warmpath-Priority", "-5"}, {"X-Warmpath-Priority", "9"}, {},
		{"X-Dynamo-Request-Priority", "-1"}, {"X-Warmpath-Priority", "1e308"}} {
		all = append(all, x.sends(nil, fmt.Sprint(i), header...))
		x.waits(i + 1)
	}
	for range 7 {
		x.free <- true
	}
	var order []string
	for range all {
		order = append(order, <-x.came)
	}
	first.wants(t, 200, "")
	for _, g := range all {
		g.wants(t, 200, "")
	}
	// Without keys nobody gets above 0, and each user is a flow of its own.
	if got := strings.Join(order, " "); got != "0 2 3 5 4 1" {
		t.Errorf("served in the order %s", got)
	}
	seen := all[1].in.Seen
	if seen.Waited <= 0 || seen.Priority != -5 || seen.Behind != 1 {
		t.Errorf("the record has a wait of %v, priority %d, behind %d", seen.Waited, seen.Priority, seen.Behind)
	}
	x.rests()
}

// A client that leaves, leaves the queue within 5 ms.
func TestClientLeavesTheQueue(t *testing.T) {
	x := newCrowd(t, 1, waiting.Config{Wait: long})
	first := x.sends(nil, "first")
	<-x.came
	var took []time.Duration
	for range 21 {
		g := x.sends(nil, "gone")
		x.waits(1)
		began := time.Now()
		g.life.End(message.ErrClientGone)
		for x.queue.Depth() > 0 && time.Since(began) < time.Second {
			time.Sleep(50 * time.Microsecond)
		}
		took = append(took, time.Since(began))
		g.wants(t, 499, "")
	}
	slices.Sort(took)
	t.Logf("left after %v; the longest took %v", took[10], took[20])
	if took[10] > 5*time.Millisecond {
		t.Error("that is over 5 ms")
	}
	x.free <- true
	first.wants(t, 200, "")
	x.rests()
}

// Each way to be turned away has its status, its header and a time to come again.
func TestWhyTheQueueDrops(t *testing.T) {
	team := func(least, greatest int) *gate.Caller {
		c := *inbound("POST", "/", "").Caller
		c.Name, c.Priority = "team", [2]int{least, greatest}
		return &c
	}
	x := newCrowd(t, 1, waiting.Config{Config: queue.Config{MaxRequests: 2, MaxBytes: 1 << 20}, Wait: 300 * time.Millisecond})
	first := x.sends(nil, "first")
	<-x.came
	late := x.sends(nil, "late")
	x.waits(1)
	due := x.sends(nil, "due", "X-Slo-Ttft-Ms", "100")
	x.waits(2)
	x.sends(nil, "full").wants(t, 429, "queue_full")
	due.wants(t, 429, "deadline")
	batch := x.sends(team(-9, 9), "batch", "X-Warmpath-Priority", "-50")
	x.waits(2)
	urgent := x.sends(team(-9, 9), "urgent", "X-Warmpath-Priority", "7")
	batch.wants(t, 429, "queue_full")
	late.wants(t, 429, "wait")
	urgent.wants(t, 429, "wait")
	x.free <- true
	first.wants(t, 200, "")
	if got := strings.Join(x.counted.counted, ", "); strings.Count(got, "refused queue_full") != 2 ||
		strings.Count(got, "refused queue_wait") != 2 || !strings.Contains(got, "refused deadline") {
		t.Errorf("counted: %s", got)
	}
	x.rests()
}

// While no worker is up requests wait for one as long as is set, and then for room.
func TestWaitForAWorker(t *testing.T) {
	x := newCrowd(t, 1, waiting.Config{Wait: long, WaitEmpty: 400 * time.Millisecond})
	down := func() {
		for _, id := range x.prober.ids {
			x.pool.Workers.Dead(id, "gone", time.Now())
		}
	}
	down()
	x.sends(nil, "late").wants(t, 503, "no_workers")
	var all []*guest
	for i := range 3 {
		all = append(all, x.sends(nil, fmt.Sprint(i)))
	}
	x.waits(3)
	time.Sleep(300 * time.Millisecond)
	x.heal()
	<-x.came
	time.Sleep(500 * time.Millisecond) // longer than for a worker: the time for room counts now
	x.serves(all)
	x.rests()
}

// A request that its worker fails waits for the next one, and comes before those that came after it.
func TestRetriesComeFirst(t *testing.T) {
	x := newCrowd(t, 2, waiting.Config{Wait: long})
	x.answers = func(n int64, w http.ResponseWriter) bool {
		if n == 1 {
			w.WriteHeader(500)
		}
		return n == 1
	}
	a := x.sends(nil, "a")
	<-x.came
	b := x.sends(nil, "b")
	<-x.came
	c := x.sends(nil, "c")
	x.waits(1)
	x.free <- true // one of the two fails
	x.until("the failed one does not wait", func() bool { return x.queue.Depth() == 1 && len(x.came) == 1 })
	<-x.came // c has the place that came free, at the worker that failed
	x.free <- true
	x.free <- true
	x.free <- true
	for _, g := range []*guest{a, b, c} {
		g.wants(t, 200, "")
	}
	x.rests()
}

// A flood of one key beside another: the light key's requests are served in turn.
func TestFloodBesideALightKey(t *testing.T) {
	x := newCrowd(t, 1, waiting.Config{Wait: long})
	key := func(name string) *gate.Caller {
		c := *inbound("POST", "/", "").Caller
		c.Name = name
		return &c
	}
	flood, light := key("flood"), key("light")
	var all []*guest
	for i := range 60 { // it names a session for each
		all = append(all, x.sends(flood, "flood", "X-Session-Id", fmt.Sprint("s", i)))
	}
	<-x.came
	x.waits(59)
	one := x.sends(light, "light")
	x.waits(60)
	before := 0
	for x.free <- true; <-x.came != "light"; x.free <- true {
		before++
	}
	if before > 12 {
		t.Errorf("%d requests of the flood came before the light key's first", before)
	}
	for range 80 {
		x.free <- true
	}
	one.wants(t, 200, "")
	for _, g := range all {
		g.wants(t, 200, "")
	}
	for len(x.free) > 0 {
		<-x.free
	}
	x.rests()
}

// A place costs what it is taken for: a key whose answers are long gets no more than one whose answers are short, also
// for other models.
func TestPlacesAreCharged(t *testing.T) {
	x := newCrowd(t, 1, waiting.Config{Config: queue.Config{MaxRequests: 1000, MaxBytes: 1 << 30}, Wait: long})
	key := func(name string) *gate.Caller {
		c := *inbound("POST", "/", "").Caller
		c.Name = name
		return &c
	}
	hog, other := key("hog"), key("other")
	all := []*guest{x.sends(hog, "hog")}
	<-x.came
	for i := range 20 {
		all = append(all, x.sends(hog, "hog"), x.sends(other, "other"))
		x.waits(2 * (i + 1))
	}
	x.free <- true
	had := map[string]int{}
	for range 14 {
		user := <-x.came
		had[user]++
		if user == "hog" {
			time.Sleep(100 * time.Millisecond)
		}
		x.free <- true
	}
	if had["hog"] > 4 {
		t.Errorf("%v: a turn of the hog takes 100 ms, and one of the other key none", had)
	}
	x.serves(all)
	x.forgets()
	x.rests()
}
