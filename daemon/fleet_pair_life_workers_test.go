package daemon

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/pair"
)

var everyLife = flag.Bool("lives", false, "TestLifeOfAPair: every cell of each connector")

const prefiller, decoder = "prefiller", "decoder"

// life is a pool of two prefillers and two decoders, or of one of each, to which something happens at one moment.
type life struct {
	*running
	e        *pairOfEngines
	at       string
	event    lifeEvent
	stream   bool
	lone     bool   // it has one of each
	list     string // workers_file
	workers  map[string]*lifeWorker
	once     sync.Once
	leave    context.CancelFunc
	armed    atomic.Bool
	starved  atomic.Bool // the test did not have the processor for a while
	happened chan struct{}
	healed   chan struct{} // closed when what hangs goes on

	hit   atomic.Pointer[lifeWorker]             // it happened to that one
	roles map[string]*atomic.Pointer[lifeWorker] // who has the leg, and the request
}

// lifeWorker is a worker, and what is wrong with it.
type lifeWorker struct {
	*httptest.Server
	id                  string
	play                http.HandlerFunc
	dead, stuck, frozen atomic.Bool
	says                atomic.Int32 // the status of its answers; 0 = none is wrong
}

// start starts the workers and the daemon.
func (l *life) start(t *testing.T, c pair.Connector) {
	l.e = &pairOfEngines{t: t, connector: c, engine: "python 0.32", kept: map[string]string{},
		sent: map[string]chan string{}}
	l.happened, l.healed = make(chan struct{}), make(chan struct{})
	l.roles = map[string]*atomic.Pointer[lifeWorker]{prefiller: {}, decoder: {}}
	dir := t.TempDir()
	l.workers, l.list = map[string]*lifeWorker{}, filepath.Join(dir, "workers.toml")
	l.add("p1", l.e.prefill)
	l.add("d1", l.e.decode)
	if !l.lone {
		l.add("p2", l.e.prefill)
		l.add("d2", l.e.decode)
	}
	l.roles[prefiller].Store(l.workers["p1"])
	l.roles[decoder].Store(l.workers["d1"])
	l.e.boot = l.workers["p1"].Server
	at, err := url.Parse(l.e.boot.URL)
	if err != nil {
		t.Fatal(err)
	}
	l.listWorkers()
	toml, _, _ := strings.Cut(settings("prefixaware", l.e.boot.URL), "[[pools.workers]]")
	toml = strings.NewReplacer("health_interval = \"100ms\"", "health_interval = \"500ms\"", "scrape_interval = \"100ms\"",
		"scrape_interval = \"2s\"").Replace(toml)
	l.running = start(t, toml+fmt.Sprintf("slow_start = \"0s\"\nheader_timeout = \"2s\"\nworkers_file = %q\n[pools.disaggregation]\n"+
		"connector = %q\nrule = \"threshold\"\nthreshold = 200\nbootstrap_port = %s\n", l.list, c, at.Port()), len(l.workers))
}

func (l *life) add(id string, play http.HandlerFunc) *lifeWorker {
	w := &lifeWorker{id: id, play: play}
	w.Server = httptest.NewServer(l.serve(w))
	l.e.t.Cleanup(w.Close)
	l.workers[id] = w
	return w
}

// listWorkers writes workers_file, without a worker's id.
func (l *life) listWorkers(but ...string) {
	var b strings.Builder
	for id, w := range l.workers {
		if !slices.Contains(but, id) {
			fmt.Fprintf(&b, "[[workers]]\nid = %q\nurl = %q\nrole = %q\n", id, w.URL, map[byte]string{'p': "prefill", 'd': "decode"}[id[0]])
		}
	}
	write(l.e.t, l.list, b.String())
}

// happens has it happen, once.
func (l *life) happens() {
	l.once.Do(func() {
		var w *lifeWorker
		if to := l.roles[l.event.to]; to != nil {
			w = to.Load()
		}
		l.hit.Store(w)
		began := time.Now()
		l.event.do(l, w)
		if time.Since(began) > mostStarved {
			l.starved.Store(true)
		}
		close(l.happened)
	})
}

// reach is called by a worker at a moment.
func (l *life) reach(at string) {
	if !l.armed.Load() {
		return
	}
	if at == l.at {
		l.happens()
	}
	if at == atSent && l.at == atFree {
		l.leave()
		time.Sleep(100 * time.Millisecond) // the prompt is computed when nobody waits any more
	}
}

// mostStarved is far below the time for which the router waits for a prompt.
const mostStarved = 150 * time.Millisecond

// watch records whether the test has the processor: what the ticks are late, by more than a few milliseconds each, adds up
// on the way of a prompt.
func (l *life) watch(ctx context.Context) {
	const every, usual = 10 * time.Millisecond, 5 * time.Millisecond
	for late := time.Duration(0); ; {
		at := time.Now()
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
		late += max(0, time.Since(at)-every-usual)
		if late > mostStarved {
			l.starved.Store(true)
		}
	}
}

func (l *life) die(w *lifeWorker) {
	w.dead.Store(true)
	w.Listener.Close()
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	maps.DeleteFunc(l.e.kept, func(id, _ string) bool { return strings.HasSuffix(id, "@"+w.Listener.Addr().String()) })
}

// restart has it die, and another process serve at its address soon, without its KV.
func (l *life) restart(w *lifeWorker) {
	l.die(w)
	time.AfterFunc(300*time.Millisecond, func() {
		w.CloseClientConnections()
		next, err := net.Listen("tcp", w.Listener.Addr().String())
		if err != nil {
			l.e.t.Error(err)
			return
		}
		w.dead.Store(false)
		twin := &http.Server{Handler: l.serve(w)}
		l.e.t.Cleanup(func() { _ = twin.Close() })
		go func() { _ = twin.Serve(next) }()
	})
}

func (l *life) hang(w *lifeWorker) {
	w.stuck.Store(true)
	time.AfterFunc(3*time.Second, func() { w.stuck.Store(false) })
}

func (l *life) freeze(w *lifeWorker) {
	w.frozen.Store(true)
	l.hang(w)
}

func says(status int32) func(*life, *lifeWorker) {
	return func(_ *life, w *lifeWorker) { w.says.Store(status) }
}

func (l *life) remove(w *lifeWorker) { l.listWorkers(w.id); l.reload() }

func (l *life) replace(w *lifeWorker) { l.add(w.id, w.play); l.listWorkers(); l.reload() }

func (l *life) reload() {
	if err := l.Reload(); err != nil {
		l.e.t.Error(err)
	}
}

func (l *life) drain(w *lifeWorker) {
	l.state.Load().pools[0].route.Workers.Drain(w.id, true, time.Now())
}

// reconnect changes the connector of the pool.
func (l *life) reconnect() {
	text, err := os.ReadFile(l.file)
	if err != nil {
		l.e.t.Error(err)
	}
	to := pair.LMCache
	if l.e.connector == to {
		to = pair.NIXL
	}
	write(l.e.t, l.file, strings.Replace(string(text), fmt.Sprintf("connector = %q", l.e.connector), fmt.Sprintf("connector = %q", to), 1))
	l.reload()
}

// keptNow returns how many prompts a prefiller keeps for nobody.
func (l *life) keptNow() int {
	l.e.mu.Lock()
	defer l.e.mu.Unlock()
	if !l.e.connector.Pins() {
		return 0
	}
	return len(l.e.kept)
}

// serve plays a worker.
func (l *life) serve(w *lifeWorker) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		if w.dead.Load() {
			panic(http.ErrAbortHandler)
		}
		switch {
		case r.Method == "POST":
			text, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(text))
			out := &lifeWriter{ResponseWriter: rw, l: l, w: w, r: r, points: []string{atHead, atDone}}
			switch {
			case w.id[0] == 'p':
				l.roles[prefiller].Store(w)
				l.reach(atSent)
			case bytes.Contains(text, []byte(`"max_tokens":1,`)) || bytes.Contains(text, []byte(`"max_tokens":1}`)):
				l.roles[decoder].Store(w)
				out.points = nil
				l.reach(atFree)
			default:
				l.roles[decoder].Store(w)
				out.points = []string{atLoaded, atFirst, atLast}
				if l.stream {
					out.points = []string{atLoaded, atFirst, atStream, atLast}
				}
				l.reach(atTold)
			}
			if out.stands() {
				w.play(out, r)
			}
			return
		case w.frozen.Load():
			select {
			case <-l.healed:
			case <-r.Context().Done():
			}
		}
		switch r.URL.Path {
		case "/query":
			_, _ = io.WriteString(rw, `{"0":{"engine_id":"engine-0"}}`)
		case "/metrics":
			_, _ = io.WriteString(rw, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 0\n")
		case "/kv_event_sources", "/weight_info":
			http.NotFound(rw, r)
		case "/v1/models":
			_, _ = io.WriteString(rw, `{"object":"list","data":[{"id":"sim","object":"model"}]}`)
		}
	}
}

// lifeWriter writes the answer of a worker, which fails at any moment of it.
type lifeWriter struct {
	http.ResponseWriter
	l      *life
	w      *lifeWorker
	r      *http.Request
	points []string // before the answer, and after each piece
	begun  bool
	out    bool // a byte is out
	over   bool // it said an error in place of the answer
}

// stands reports whether the worker goes on with the answer.
func (w *lifeWriter) stands() bool {
	for w.w.stuck.Load() && !w.w.dead.Load() {
		select {
		case <-w.l.healed:
			w.w.stuck.Store(false)
		case <-w.r.Context().Done():
			panic(http.ErrAbortHandler)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if w.w.dead.Load() {
		panic(http.ErrAbortHandler)
	}
	if status := int(w.w.says.Load()); status > 0 && !w.out && !w.over {
		w.over = true
		http.Error(w.ResponseWriter, `{"error":{"message":"as played","code":"played"}}`, status)
	}
	return !w.over
}

// reach is at the next moment.
func (w *lifeWriter) reach() bool {
	if len(w.points) > 0 {
		w.l.reach(w.points[0])
		w.points = w.points[1:]
	}
	return w.stands()
}

func (w *lifeWriter) Write(b []byte) (int, error) {
	if !w.begun {
		w.begun = true
		if w.w.id[0] == 'p' && w.stands() { // its header is out before
			w.out = true
			w.Flush()
		}
		w.reach()
	}
	pieces := [][]byte{b}
	if w.w.id[0] == 'd' && !bytes.HasPrefix(b, []byte("data:")) {
		pieces = [][]byte{b[:len(b)/2], b[len(b)/2:]}
	}
	for _, piece := range pieces {
		if w.over {
			break
		}
		if _, err := w.ResponseWriter.Write(piece); err != nil {
			return 0, err
		}
		w.out = true
		w.Flush()
		w.reach()
	}
	return len(b), nil
}

func (w *lifeWriter) Flush() { w.ResponseWriter.(http.Flusher).Flush() }
