package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// fleet is the kind of the workers.
type fleet struct {
	connector string
	front     *front
	// frees: what no decoder reads can be freed, and is to be. To a decoder that Mooncake's prefiller does not know any
	// more it says nothing for minutes, so that the router leaves what is kept to VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT.
	frees bool
}

func (f fleet) name() string { return f.connector + " " + f.front.name }

// The fronts. vLLM's are those of testdata/vllm/README.md: 0.14 and 0.19 take the answer off the context.
var (
	vllm14 = front{name: "vllm-0.14", cuts: true, plain: []string{pathResponses, pathMessages}}
	vllm19 = front{name: "vllm-0.19", cuts: true, plain: []string{pathResponses}}
	vllm32 = front{name: "vllm-0.32"}
	rust   = front{name: "vllm-rust", strict: true}
	sglang = front{name: "sglang", rooms: true}
)

var fleets = []fleet{
	{"nixl", &vllm32, true},
	{"nixl", &vllm19, true},
	{"nixl", &vllm14, true},
	{"nixl", &rust, true},
	{"lmcache", &vllm32, true},
	{"mooncake", &vllm32, false},
	{"mooncake", &rust, false},
	{"sglang", &sglang, true},
	{"sidecar", &vllm32, true},
}

// clients are how many requests are under way at a time.
const clients = 64

// The keys of clients.
const (
	keyPlain   = "plain-0123456789"
	keySalted  = "salted-0123456789"
	keyLimited = "limited-0123456789"
)

// stage is one fleet, its daemon and their requests.
type stage struct {
	fleet    fleet
	dir      string
	seed     uint64
	specs    []spec
	workers  []*worker
	bootPort int
	router   rig.Router
	proc     *rig.Proc

	read, lost, ended, reloads, restarts atomic.Int64
	loose                                atomic.Int64 // in ns: a request that was sent before may find no pairs
	cache                                sync.Map     // prompts that all share (lmcache)

	mu       sync.Mutex // guards all below
	engines  map[string]*memory
	breaches map[string]int
	examples []string
	answers  map[string]int
}

// breach records what must not be.
func (st *stage) breach(kind string, n int, format string, a ...any) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.breaches[kind]++
	if st.breaches[kind] <= 3 {
		st.examples = append(st.examples, fmt.Sprintf("%s, request %d: %s", kind, n, fmt.Sprintf(format, a...)))
	}
}

// watchFor records what a client may not bring to a worker.
func (st *stage) watchFor(r *call) {
	if r.s.sent.Load() < st.loose.Load() || !strings.HasPrefix(r.Path, "/v1/") || r.Path == pathCount {
		return
	}
	if bytes.Contains(r.Text, []byte(smuggled)) {
		st.breach("smuggled", r.s.n, "in the body of %s", r.Path)
	}
	if bytes.Contains(r.Raw, []byte(smuggled)) {
		st.breach("smuggled", r.s.n, "in the head of %s", r.Path)
	}
}

func (st *stage) engineOf(id string) *memory {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.engines[id]
}

// at returns the worker at HOST:PORT, on that of a host.
func (st *stage) at(addr string) *worker {
	return st.worker(func(w *worker) bool { return w.addr == addr })
}
func (st *stage) on(host string) *worker {
	return st.worker(func(w *worker) bool { return w.host == host })
}

func (st *stage) worker(is func(*worker) bool) *worker {
	if i := slices.IndexFunc(st.workers, is); i >= 0 {
		return st.workers[i]
	}
	return nil
}

// newStage starts the workers of a fleet.
func newStage(f fleet, dir string, seed uint64, requests int) (*stage, error) {
	st := &stage{fleet: f, dir: dir, seed: seed, engines: map[string]*memory{}, breaches: map[string]int{},
		answers: map[string]int{}, specs: make([]spec, requests)}
	for n := range st.specs {
		st.specs[n].draw(seed, n, f.front, f.connector != "sglang")
	}
	_, port, _ := net.SplitHostPort(rig.FreeAddr())
	st.bootPort, _ = strconv.Atoi(port)
	for i := range 5 {
		w := &worker{st: st, host: fmt.Sprintf("127.0.0.%d", 11+i)}
		if err := w.start(); err != nil {
			st.close()
			return nil, err
		}
		st.workers = append(st.workers, w)
	}
	return st, nil
}

func (st *stage) close() {
	for _, w := range st.workers {
		w.close()
	}
	st.proc.Stop()
}

// roles of the five workers, in the configurations of a run.
var roles = [][]string{
	{"prefill", "prefill", "decode", "decode", "both"},
	{"prefill", "prefill", "decode", "decode", "decode"},
	{"prefill", "decode", "decode", "prefill", "decode"},
	{"decode", "prefill", "prefill", "decode", "both"},
}

// configure makes the n-th configuration.
func (st *stage) configure(n int) {
	d := diceOf(st.seed, n, 3)
	pool := fmt.Sprintf("name = \"pd\"\nstrategy = %q\nhealth_interval = \"300ms\"\nheader_timeout = \"3s\"\n"+
		"stream_timeout = \"3s\"\nprefill_tokens_per_second = 100000\n", pick(d, "prefixaware", "prefixaware", "kvaware",
		"session", "roundrobin"))
	if d.in(30) {
		pool += "first_byte_retry = \"700ms\"\n"
	}
	if d.in(50) {
		pool += "max_in_flight = 24\nqueue = { max_requests = 200, wait = \"3s\" }\n"
	}
	if st.fleet.connector != "sglang" {
		pool += "[pools.adapters]\nsource = \"/adapters/{name}\"\nmax = 4\n"
	}
	connector, its := st.fleet.connector, roles[n%len(roles)]
	switch {
	case connector == "sglang":
		its = roles[1]
	case n > 0 && d.in(15):
		connector = ""
		st.loose.Store(1 << 62)
	}
	if connector != "" {
		pool += fmt.Sprintf("[pools.disaggregation]\nconnector = %q\nthreshold = 200\nbootstrap_port = %d\n", connector,
			st.bootPort)
		if d.in(70) {
			pool += "rule = \"threshold\"\n"
		}
	}
	for i, w := range st.workers {
		pool += fmt.Sprintf("[[pools.workers]]\nid = \"w%d\"\nurl = \"http://%s\"\n", i, w.addr)
		if connector != "" {
			pool += fmt.Sprintf("role = %q\nlabels = { conf = \"%d\" }\n", its[i], n)
		}
		is := decodes
		if its[i] == "prefill" {
			is = prefills
		}
		w.role.Store(int32(is))
	}
	st.router.Pool = pool
}

// tighten waits until the daemon has the n-th configuration in force, if it has pairs. A request that was sent before
// is served under the one before, for as long as it waits in the queue and hangs at workers.
func (st *stage) tighten(n int) {
	if st.loose.Load() == 0 || !strings.Contains(st.router.Pool, "connector") {
		return
	}
	if !rig.Eventually(10*time.Second, func() bool {
		return bytes.Contains(wire.GetFrom(st.proc.Admin, "/api/v1/pools").Body, fmt.Appendf(nil, `"conf":"%d"`, n))
	}) {
		st.breach("trial", -1, "10 s after a reload the configuration before is in force")
	}
	st.loose.Store(time.Now().UnixNano())
}

// serve starts the daemon.
func (st *stage) serve(bin string) (err error) {
	for _, key := range []string{keyPlain, keySalted, keyLimited} {
		name, _, _ := strings.Cut(key, "-")
		file := filepath.Join(st.dir, name+".key")
		if err := os.WriteFile(file, []byte(key), 0o600); err != nil {
			return err
		}
		st.router.Strategies += fmt.Sprintf("[[keys]]\nname = %q\nfile = %q\n%s", name, file,
			map[string]string{keySalted: "cache_salt = true\n", keyLimited: "max_in_flight = 16\n"}[key])
	}
	st.router.Server = "buffer_body_bytes = 65536\n"
	st.configure(0)
	st.proc, err = st.router.Start(st.dir, bin)
	return err
}

// play sends all requests, and breaks workers and changes the configuration between them.
func (st *stage) play(ctx context.Context) {
	var next atomic.Int64
	var all sync.WaitGroup
	breaks := make(chan int, len(st.specs))
	all.Go(func() {
		for n := range breaks {
			st.disturb(n)
		}
	})
	var sending sync.WaitGroup
	for range clients {
		sending.Go(func() {
			c := &wire.Client{Addr: st.proc.Addr}
			defer c.Close()
			for ctx.Err() == nil {
				n := int(next.Add(1)) - 1
				if n >= len(st.specs) {
					return
				}
				if n%every == every-1 {
					breaks <- n / every
				}
				st.send(c, &st.specs[n])
			}
		})
	}
	sending.Wait()
	close(breaks)
	all.Wait()
}

// every so many requests something is broken or changed.
const every = 100

// disturb breaks a worker for a moment, or changes the configuration.
func (st *stage) disturb(n int) {
	d := diceOf(st.seed, n, 4)
	w := st.workers[d.IntN(len(st.workers))]
	switch d.IntN(5) {
	case 0, 1:
		st.restarts.Add(1)
		if err := w.restart(time.Duration(50+d.IntN(250)) * time.Millisecond); err != nil {
			st.breach("trial", -1, "a worker does not start again: %v", err)
		}
	case 2:
		w.ill.Store(true)
		time.Sleep(500 * time.Millisecond)
		w.ill.Store(false)
	case 3:
		w.stuck.Store(time.Now().Add(700 * time.Millisecond).UnixNano())
	default:
		st.reloads.Add(1)
		st.configure(n)
		if err := st.router.Rewrite(st.proc); err != nil {
			st.breach("trial", -1, "%v", err)
		}
		st.proc.Signal(syscall.SIGHUP)
		st.tighten(n)
	}
}

// send sends one request, and judges what its client gets.
func (st *stage) send(c *wire.Client, s *spec) {
	s.sent.Store(time.Now().UnixNano())
	if !s.stays {
		st.leave(s)
		return
	}
	a, e := c.Do(s.request(), true), st.fleet.front
	var t net.Error
	switch {
	case a.Status == 0 || errors.As(a.Err, &t) && t.Timeout():
		st.breach("silent", s.n, "%s: %v after %v", s.path, a.Err, a.Took.Round(time.Millisecond))
	case e.rooms && a.Status == 400 && bytes.Contains(a.Body, []byte("cannot be split")):
		st.count("unsplit")
		return
	case (a.Status == 400 || a.Status == 422) && s.alone:
		st.breach("blamed", s.n, "%s: %s", s.path, a)
	case bytes.Contains(a.Body, []byte("remote_engine_id")) && s.sent.Load() > st.loose.Load():
		st.breach("leaked", s.n, "%s: %s", s.path, a)
	case a.Status == 200 && a.Err == nil && !bytes.Contains(a.Body, []byte(mark(s.n))) &&
		!bytes.Contains(a.Body, []byte(`"error"`)):
		st.breach("foreign", s.n, "%s: %s", s.path, a)
	}
	kind := fmt.Sprint(a.Status)
	if a.Err != nil && a.Status == 200 {
		kind = "broken"
	}
	st.count(kind)
}

func (st *stage) count(kind string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.answers[kind]++
}

// leave sends a request and resets the connection after a while, whatever the request is at.
func (st *stage) leave(s *spec) {
	st.count("left")
	c, err := wire.Dial(st.proc.Addr)
	if err != nil {
		return
	}
	_ = c.SetDeadline(time.Now().Add(s.leaves))
	if _, err := c.Write(s.request()); err == nil {
		_, err = c.R.ReadByte()
		for err == nil {
			_, err = c.R.Discard(1 + c.R.Buffered())
		}
	}
	c.Reset()
}

// rest waits until nothing is kept, and no account of the daemon is above zero, and records what is not so 5 s later.
func (st *stage) rest() (stranded int) {
	var of []int
	var held string
	rig.Eventually(5*time.Second, func() bool {
		stranded, of = 0, nil
		for _, m := range st.memories() {
			n, requests := m.blocks()
			stranded, of = stranded+n, append(of, requests...)
		}
		held = st.held()
		return (stranded == 0 || !st.fleet.frees) && held == ""
	})
	if !st.fleet.frees {
		of = nil
	}
	for _, n := range of {
		s := &st.specs[n]
		st.breach("stranded", n, "%s, stays %v, prefills %q, decodes %q", s.path, s.stays, s.play[prefills], s.play[decodes])
	}
	if held != "" {
		st.breach("held", -1, "%s", held)
	}
	if st.proc.Exited() || st.proc.Logged("panic: ") || st.proc.Logged("BUG:") {
		st.breach("ended", -1, "%s", st.proc.Log(600))
	}
	return stranded
}

func (st *stage) memories() []*memory {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Collect(maps.Values(st.engines))
}

// held returns the accounts of the daemon that are above zero.
func (st *stage) held() string {
	a := wire.GetFrom(st.proc.Admin, "/metrics")
	if a.Err != nil || a.Status != 200 {
		return fmt.Sprintf("/metrics: %d %v", a.Status, a.Err)
	}
	var above []string
	for line := range strings.Lines(string(a.Body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, labels, _ := strings.Cut(series, "{")
		if value != "0" && (slices.Contains(accounts, name) || name == "warmpath_key_used_ratio" &&
			strings.Contains(labels, `"max_in_flight"`)) {
			above = append(above, series+" "+value)
		}
	}
	return strings.Join(above, ", ")
}

// accounts are the metrics that are 0 at rest.
var accounts = []string{"warmpath_worker_in_flight", "warmpath_queue_depth", "warmpath_queue_bytes", "warmpath_held",
	"warmpath_accounts_open", "warmpath_account_leaks_total"}

// prefilled returns what the daemon counts of first legs.
func (st *stage) prefilled() map[string]int {
	sums := map[string]int{}
	a := wire.GetFrom(st.proc.Admin, "/metrics")
	for line := range strings.Lines(string(a.Body)) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.HasPrefix(series, "warmpath_prefills_total{") {
			continue
		}
		_, result, _ := strings.Cut(series, `result="`)
		result, _, _ = strings.Cut(result, `"`)
		if n, _ := strconv.Atoi(value); n > 0 {
			sums[result] += n
		}
	}
	return sums
}
