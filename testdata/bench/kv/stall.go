package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// The marks while an L2 is in trouble, in its worst phase.
const (
	existsMost = time.Millisecond     // of EXISTS, for 99 of 100
	routeMost  = 5 * time.Millisecond // by which the slowest request through the router is later than the slowest without
)

// stall is a daemon over a Redis that gets into trouble under load. Its memory has room for a quarter of the values.
type stall struct {
	redis, ours *server
	pod         string  // host:port of the HyperPod listener
	idle        *server // a Redis that gets only the same EXISTS: how long the machine itself makes them wait
	route       string  // URL of a completion
	direct      string  // the same at the worker

	mu    sync.Mutex // guards what follows
	phase string
	times map[string]map[string][]time.Duration // by phase and by what was asked
	names []string                              // of phases, in order
}

const (
	warmUp      = 5 * time.Second
	stallMemory = 64 << 20
	stallKeys   = 256
	stallValue  = 1 << 20
)

// phase is a time of the run, and what begins it.
type phase struct {
	name  string
	begin func() error
	lasts time.Duration
}

// waits is one line of the output: how long one kind of question took in a phase.
type waits struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
	Max   float64 `json:"max_us"`
	Most  float64 `json:"most_us,omitempty"` // the mark of p99; of a completion that of max, over max_direct_us
	Over  float64 `json:"max_direct_us,omitempty"`
	OK    bool    `json:"ok"`
}

// runStall prints how long EXISTS and requests took before, while and after the Redis was stopped, flushed and killed.
func runStall(o options) error {
	lines, err := measureStall(o.bin, o.stopped)
	if err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for _, l := range lines {
		if err := out.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

func measureStall(bin string, stopped time.Duration) (lines []waits, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(16)) // the askers wait for no other goroutine of this program
	dir, err := os.MkdirTemp("", "kvbench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s := &stall{times: map[string]map[string][]time.Duration{}}
	defer func() { s.close() }()
	if err := s.start(bin, dir); err != nil {
		return nil, err
	}
	if err := s.put(); err != nil {
		return nil, err
	}
	time.Sleep(min(stopped, warmUp)) // the daemon takes its memory meanwhile: that is not measured
	short := min(stopped, 5*time.Second)
	err = s.play([]phase{
		{name: "all is well", begin: func() error { return nil }, lasts: short},
		{name: "L2 stopped", begin: s.signal(syscall.SIGSTOP), lasts: stopped},
		{name: "L2 goes on", begin: s.signal(syscall.SIGCONT), lasts: short},
		{name: "L2 flushed", begin: s.flush, lasts: short},
		{name: "L2 killed", begin: s.signal(syscall.SIGKILL), lasts: short},
	})
	return s.lines(), err
}

func (s *stall) start(bin, dir string) (err error) {
	s.redis, err = startRedis(dir)
	if err != nil {
		return err
	}
	s.idle, err = startRedis(dir)
	if err != nil {
		return err
	}
	worker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	go func() { _ = http.Serve(worker, http.HandlerFunc(answer)) }()
	front := rig.FreeAddr()
	addr := rig.FreeAddr()
	s.pod = rig.FreeAddr()
	s.route = "http://" + front + "/v1/completions"
	s.direct = "http://" + worker.Addr().String() + "/v1/completions"
	text := fmt.Sprintf("[server]\nlisten = '%s'\nadmin = '127.0.0.1:0'\nlog_level = 'error'\n"+
		"[kv_cache]\nmax_bytes = %d\nresp = '%s'\nhyperpod = '%s'\nsegment = 'kvbench-stall-%d'\n"+
		"[kv_cache.l2]\nenabled = true\nbackend = 'redis'\nurl = 'redis://%s'\n"+
		"[[pools]]\nmodels = ['*']\nworkers = [{ url = 'http://%s' }]\n",
		front, stallMemory, addr, s.pod, os.Getpid(), s.redis.Addr, worker.Addr())
	s.ours, err = served(rig.Serve(dir, bin, addr, text))
	return err
}

// signal returns what sends a signal to the L2.
func (s *stall) signal(what syscall.Signal) func() error {
	return func() error { s.redis.Signal(what); return nil }
}

func (s *stall) close() {
	for _, one := range []*server{s.ours, s.redis, s.idle} {
		if one != nil {
			one.Signal(syscall.SIGCONT)
			one.End(patience)
		}
	}
}

// answer is a worker that answers at once.
func answer(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/models") {
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
		return
	}
	_, _ = io.WriteString(w, `{"id":"1","object":"text_completion","model":"m","choices":[{"index":0,"text":"a"}]}`)
}

func stallKey(i int) string { return fmt.Sprint("stall", i) }

// put puts all values, and waits until the Redis has most of them: the queue to it is bounded.
func (s *stall) put() error {
	c, err := newAsker(s.ours.Addr, false)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	value := bytes.Repeat([]byte("v"), stallValue)
	for i := range stallKeys {
		if line, err := c.put(stallKey(i), value); err != nil || line != "+OK" {
			return fmt.Errorf("SET answers %q, %w", line, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil
}

func (s *stall) flush() error {
	c, err := newAsker(s.redis.Addr, false)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	_, err = c.ask("FLUSHALL", "ASYNC")
	return err
}

// play lets the askers ask while phase follows phase.
func (s *stall) play(phases []phase) error {
	s.enter(phases[0].name)
	ctx, end := context.WithCancel(context.Background())
	defer end()
	askers := []func(context.Context) error{
		func(ctx context.Context) error { return s.askExists(ctx, exists) },
		func(ctx context.Context) error { return s.askExists(ctx, existsNative) },
		func(ctx context.Context) error { return s.askExists(ctx, existsIdle) },
		func(ctx context.Context) error { return s.complete(ctx, s.route, routed) },
		func(ctx context.Context) error { return s.complete(ctx, s.direct, direct) },
		s.readAndWrite, s.askLease,
	}
	ended := make(chan error, len(askers))
	for _, f := range askers {
		go func() { ended <- f(ctx) }()
	}
	left := len(askers)
	for _, p := range phases {
		s.enter(p.name)
		if err := p.begin(); err != nil {
			return err
		}
		select {
		case err := <-ended:
			return fmt.Errorf("%s: %w", p.name, err)
		case <-time.After(p.lasts):
		}
	}
	end()
	for ; left > 0; left-- {
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return nil
}

func (s *stall) enter(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.names, name) {
		s.names = append(s.names, name)
		s.times[name] = map[string][]time.Duration{}
	}
	s.phase = name
}

func (s *stall) note(what string, since time.Time) {
	took := time.Since(since)
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.times[s.phase]
	of[what] = append(of[what], took)
}

// The places that EXISTS asks for.
const (
	exists       = "EXISTS"
	existsNative = "EXISTS of a native client"
	existsIdle   = "EXISTS of an idle redis-server"
)

// askExists asks for keys of memory, of L2, and of neither. A native client opens with none of the commands of a Redis
// library: a value that it was promised is fetched.
func (s *stall) askExists(ctx context.Context, what string) error {
	of := s.ours
	if what == existsIdle {
		of = s.idle
	}
	c, err := newAsker(of.Addr, what != existsNative)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	fd, err := c.block()
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	for ctx.Err() == nil {
		key := stallKey(rand.IntN(stallKeys * 5 / 4))
		start := time.Now()
		if line, err := askNow(fd, command("EXISTS", key)); err != nil || line != ":0\r\n" && line != ":1\r\n" {
			return fmt.Errorf("EXISTS answers %q, %w", line, err)
		}
		s.note(what, start)
		time.Sleep(500 * time.Microsecond)
	}
	return nil
}

// readAndWrite is a worker beside them: its GETs may wait for L2, until the L2 is known to be down.
func (s *stall) readAndWrite(ctx context.Context) error {
	c, err := newAsker(s.ours.Addr, true)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	value := bytes.Repeat([]byte("w"), stallValue)
	for ctx.Err() == nil {
		key := stallKey(rand.IntN(stallKeys))
		start := time.Now()
		if _, err := c.ask("GET", key); err != nil {
			return fmt.Errorf("GET: %w", err)
		}
		s.note("GET", start)
		if line, err := c.put(key, value); err != nil || line != "+OK" && !strings.HasPrefix(line, "-OOM") {
			return fmt.Errorf("SET answers %q, %w", line, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// noLease is what looks a key up at the HyperPod listener that is nowhere.
const noLease = "a lease of a key that is nowhere"

// askLease asks for leases of keys that no tier has: LMCache's lookups end with one.
func (s *stall) askLease(ctx context.Context) error {
	c, err := newAsker(s.pod, false)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	fd, err := c.block()
	if err != nil {
		return err
	}
	r := &reader{fd: fd, in: make([]byte, 16<<10)}
	defer r.close()
	for ctx.Err() == nil {
		path := fmt.Sprintf("/v1/kv/kvbench/none%d/leases?ttl_s=30", rand.IntN(1<<20))
		start := time.Now()
		if _, err := r.ask("POST", path, nil, http.StatusNotFound); err != nil {
			return fmt.Errorf("a lease: %w", err)
		}
		s.note(noLease, start)
		time.Sleep(500 * time.Microsecond)
	}
	return nil
}

// Completions, with their worker's time.
const (
	routed = "a completion"
	direct = "a completion straight from its worker"
)

// complete sends completions to a URL.
func (s *stall) complete(ctx context.Context, to, what string) error {
	for ctx.Err() == nil {
		body := fmt.Sprintf(`{"model":"m","prompt":"%s"}`, strings.Repeat(fmt.Sprint("word", rand.IntN(100), " "), 200))
		start := time.Now()
		a, err := http.Post(to, "application/json", strings.NewReader(body))
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, a.Body)
		a.Body.Close()
		if a.StatusCode != http.StatusOK {
			return fmt.Errorf("a completion answers %s", a.Status)
		}
		s.note(what, start)
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

// lines makes the output of the times.
func (s *stall) lines() (all []waits) {
	most := map[string]time.Duration{exists: existsMost, existsNative: existsMost, noLease: existsMost,
		routed: routeMost}
	asked := []string{exists, existsNative, existsIdle, noLease, direct, routed, "GET"}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.names {
		for _, what := range asked {
			list := slices.Sorted(slices.Values(s.times[name][what]))
			if len(list) == 0 {
				continue
			}
			us := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }
			w := waits{Name: name + ": " + what, Count: len(list), P50: us(list[len(list)/2]), P99: us(list[len(list)*99/100]),
				Max: us(list[len(list)-1]), Most: us(most[what])}
			w.OK = w.Most == 0 || w.P99 <= w.Most
			if straight := s.times[name][direct]; what == routed && len(straight) > 0 {
				w.Over = us(slices.Max(straight))
				w.OK = w.Max-w.Over <= w.Most
			}
			all = append(all, w)
		}
	}
	return all
}
