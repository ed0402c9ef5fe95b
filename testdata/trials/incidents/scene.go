package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/certtest"
	"github.com/warmpath/warmpath/daemon/lab/wasmtest"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// scene is a daemon and its workers.
type scene struct {
	ctx      context.Context
	watch    *watch
	dir, bin string
	conf     string
	addrs    map[string]string // by name
	args     map[string][]string
	procs    map[string]*rig.Proc
	router   *rig.Proc
	about    string // the id of the request that why is asked about; "" = the last one
	asked    int
	relay    atomic.Bool // it passes nothing on
	mu       sync.Mutex
	answers  []string // guarded by mu
	closers  []io.Closer
}

// begin starts the workers and, if conf is not empty, the daemon.
func (s *scene) begin(workers []string) error {
	for _, w := range workers {
		f := strings.Fields(w)
		s.addrs[f[0]], s.args[f[0]] = rig.FreeAddr(), f[1:]
		if err := s.start(f[0]); err != nil {
			return err
		}
	}
	s.addrs["kv"] = rig.FreeAddr()
	if strings.Contains(s.conf, "redis = ") || strings.Contains(s.conf, "@redis") {
		addr := rig.FreeAddr()
		p, err := rig.Redis(s.dir, addr)
		if err != nil {
			return err
		}
		s.addrs["redis"], s.procs["redis"] = addr, p
		s.addrs["relay"], err = s.relays(addr)
		if err != nil {
			return err
		}
	}
	for _, name := range moduleNames.FindAllStringSubmatch(s.conf, -1) {
		if err := s.module(name[1]); err != nil {
			return err
		}
	}
	return s.serve()
}

// start starts a worker.
func (s *scene) start(name string) error {
	command := append([]string{s.bin, "sim", "--listen", s.addrs[name]}, s.args[name]...)
	p, err := rig.Start(s.dir, name, s.addrs[name], command...)
	if err != nil {
		return err
	}
	s.procs[name] = p
	return p.AwaitPort()
}

// serve starts the daemon. Prometheus has read it twice before serve returns.
func (s *scene) serve() (err error) {
	listen, admin := rig.FreeAddr(), rig.FreeAddr()
	s.addrs["listen"], s.addrs["admin"] = listen, admin
	s.router, err = rig.Serve(s.dir, s.bin, listen, s.text())
	if err != nil {
		return err
	}
	s.router.Admin = admin
	if err := s.watch.add(admin); err != nil {
		return err
	}
	s.wait(3)
	return nil
}

var (
	workerLines = regexp.MustCompile(`(?m)^WORKERS (.+)$`)
	moduleNames = regexp.MustCompile(`DIR/(\w+)\.wasm`)
	fileMarks   = regexp.MustCompile(`(?m)^FILE (\S+) (.+)$`)
)

// text is the configuration. "WORKERS NAME ..." are their tables, "FILE NAME TEXT" makes a file, DIR is the scene's
// folder, and @NAME an address.
func (s *scene) text() string {
	text := fileMarks.ReplaceAllStringFunc(s.conf, func(l string) string {
		m := fileMarks.FindStringSubmatch(l)
		s.write(m[1], m[2])
		return ""
	})
	text = workerLines.ReplaceAllStringFunc(text, func(l string) string {
		var b strings.Builder
		for _, name := range strings.Fields(l)[1:] {
			fmt.Fprintf(&b, "[[pools.workers]]\nid = %q\nurl = \"http://@%s\"\n", name, name)
			if i := slices.Index(s.args[name], "--role"); i >= 0 {
				fmt.Fprintf(&b, "role = %q\n", s.args[name][i+1])
			}
		}
		return b.String()
	})
	if !strings.Contains(text, "[server]") {
		text = "[server]\n" + text
	}
	text = strings.Replace(text, "[server]\n", "[server]\nlisten = \"@listen\"\nadmin = \"@admin\"\n", 1)
	text = strings.ReplaceAll(text, "DIR", s.dir)
	names := slices.SortedFunc(maps.Keys(s.addrs), func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		text = strings.ReplaceAll(text, "@"+name, s.addrs[name])
	}
	return text
}

// reload changes the configuration: old becomes new.
func (s *scene) reload(old, new string) error {
	s.conf = strings.Replace(s.conf, old, new, 1)
	err := rig.Replace(s.router.Conf, s.text())
	s.wait(3)
	return err
}

// another starts a second router, with the configuration as changed.
func (s *scene) another(changes ...string) error {
	first, was, addrs := s.router, s.conf, maps.Clone(s.addrs)
	s.conf = strings.NewReplacer(changes...).Replace(was)
	err := s.serve()
	s.procs["another"] = s.router
	s.router, s.conf, s.addrs = first, was, addrs
	return err
}

// relays starts a relay to addr in this process, which passes nothing on while s.relay is true.
func (s *scene) relays(addr string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s.closers = append(s.closers, l)
	pass := func(from, to net.Conn) {
		defer to.Close()
		for buf := make([]byte, 64<<10); ; {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			if !s.relay.Load() {
				to.Write(buf[:n])
			}
		}
	}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if up, err := net.Dial("tcp", addr); err == nil {
				go pass(c, up)
				go pass(up, c)
			}
		}
	}()
	return l.Addr().String(), nil
}

// store puts a value of 64 KiB into the KV cache, as LMCache does.
func (s *scene) store(key string) error {
	c, err := net.Dial("tcp", s.addrs["kv"])
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	value := strings.Repeat("x", 64<<10)
	fmt.Fprintf(c, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, len(value), value)
	answer := make([]byte, 5)
	if _, err := io.ReadFull(c, answer); err != nil || string(answer) != "+OK\r\n" {
		return fmt.Errorf("SET: %q %w", answer, err)
	}
	return nil
}

// certificate writes the pair of the configuration, which ends after d.
func (s *scene) certificate(d time.Duration) error {
	_, err := certtest.WriteDated(s.dir, "site", "127.0.0.1", time.Now().Add(-24*time.Hour), time.Now().Add(d))
	return err
}

// write writes a file of the scene.
func (s *scene) write(name, text string) error {
	return rig.Replace(filepath.Join(s.dir, name), text)
}

// module assembles a module of testdata/modules.
func (s *scene) module(name string) error {
	root, err := rig.Root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(root, "testdata/modules", name+".wat"))
	if err != nil {
		return err
	}
	wasm, err := wasmtest.Assemble(string(text))
	if err != nil {
		return err
	}
	return s.write(name+".wasm", string(wasm))
}

// wait waits for so many seconds.
func (s *scene) wait(seconds float64) {
	select {
	case <-time.After(time.Duration(seconds * float64(time.Second))):
	case <-s.ctx.Done():
	}
}

// fault sets a fault of a worker.
func (s *scene) fault(name, mode string) error {
	a := wire.Once(s.addrs[name], wire.Post("/sim/fault", fmt.Sprintf(`{"mode":%q}`, mode)))
	if a.Status != http.StatusOK {
		return fmt.Errorf("fault %s of %s: %s", mode, name, a.String())
	}
	return nil
}

// request is what a client asks for.
type request struct {
	model, key string        // default: sim, and no key
	words      int           // of the prompt, some 1.5 tokens each; default 10
	tokens     int           // of the answer; default 4
	patience   time.Duration // default 20 s
	path       string        // default /v1/completions

	header string // "NAME: VALUE", beside the usual ones
	group  bool   // all have one prompt
}

// ask has n clients send a request each, all at once. The result is called to wait for all of them.
func (s *scene) ask(n int, r request) (done func()) {
	var all sync.WaitGroup
	for range n {
		s.asked++
		id := fmt.Sprintf("r%d", s.asked)
		all.Go(func() {
			answer := s.send(id, r)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.answers = append(s.answers, answer)
		})
		time.Sleep(time.Millisecond) // in this order
	}
	return all.Wait
}

func (s *scene) send(id string, r request) string {
	if r.patience == 0 {
		r.patience = 20 * time.Second
	}
	var prompt strings.Builder
	of := id
	if r.group {
		of = "group"
	}
	for i := range max(10, r.words) {
		fmt.Fprintf(&prompt, "%s%dq ", of, i*7919%9973)
	}
	model := r.model
	if model == "" {
		model = "sim"
	}
	body, err := json.Marshal(map[string]any{"model": model, "prompt": prompt.String(), "stream": true,
		"max_tokens": max(4, r.tokens)})
	if err != nil {
		return err.Error()
	}
	path := r.path
	if path == "" {
		path = "/v1/completions"
	}
	ctx, stop := context.WithTimeout(s.ctx, r.patience)
	defer stop()
	req, err := http.NewRequestWithContext(ctx, "POST", s.router.URL()+path, bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", id)
	if r.key != "" {
		req.Header.Set("X-Api-Key", r.key)
	}
	if name, value, is := strings.Cut(r.header, ": "); is {
		req.Header.Set(name, value)
	}
	began := time.Now()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	took := func() string { return fmt.Sprintf("%s %.1fs", id, time.Since(began).Seconds()) }
	if err != nil {
		return took() + " none: " + err.Error()
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	text := strings.ReplaceAll(strings.TrimSpace(string(all)), "\n", " ")
	if resp.StatusCode != http.StatusOK {
		return fmt.Sprintf("%s %d %s retry-after=%s %s", took(), resp.StatusCode, text,
			resp.Header.Get("Retry-After"), resp.Header.Get("X-Warmpath-Dropped"))
	}
	if err != nil || !strings.Contains(text, "[DONE]") {
		return fmt.Sprintf("%s broken %v %s", took(), err, text[max(0, len(text)-300):])
	}
	return took() + " 200"
}

// command runs a command of the daemon's.
func (s *scene) command(args ...string) string {
	ctx, stop := context.WithTimeout(s.ctx, 20*time.Second)
	defer stop()
	args = append(args, "--admin", s.router.Admin)
	if strings.Contains(s.conf, "admin_token_file") {
		args = append(args, "--token-file", "admin.token")
	}
	cmd := exec.CommandContext(ctx, s.bin, args...)
	cmd.Dir = s.dir
	out, err := cmd.CombinedOutput()
	return string(out) + fmt.Sprintf("exit %d %v\n", cmd.ProcessState.ExitCode(), err)
}

// killBusy kills the worker that has a request in flight.
func (s *scene) killBusy() error {
	var pools []struct {
		Workers []struct {
			ID       string
			InFlight int `json:"in_flight"`
		}
	}
	if err := json.Unmarshal(s.get("/api/v1/pools"), &pools); err != nil {
		return err
	}
	for _, p := range pools {
		for _, w := range p.Workers {
			if w.InFlight > 0 {
				s.procs[w.ID].Stop()
				return nil
			}
		}
	}
	return errors.New("no worker has a request")
}

// does runs a command of the daemon's, whose output counts as an answer.
func (s *scene) does(args ...string) {
	said := s.command(args...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, strings.Join(args, " ")+": "+said)
}

// order posts to a worker, or to the daemon's admin port as "admin", a body or {}.
func (s *scene) order(to, path string, body ...string) error {
	at := s.addrs[to]
	a := wire.Once(at, wire.Request("POST", path, append(body, "{}")[0], "Host: "+at, "Content-Type: application/json",
		bearer))
	if a.Status != http.StatusOK {
		return fmt.Errorf("%s of %s: %s", path, to, a.String())
	}
	return nil
}

// get asks the daemon's admin port.
func (s *scene) get(path string) []byte {
	return wire.Once(s.router.Admin, wire.Request("GET", path, "", "Host: "+s.router.Admin, bearer)).Body
}

// read returns all that an operator may look at, by its name, and keeps it in the scene's folder.
func (s *scene) read() map[string]string {
	about := s.about
	if about == "" {
		about = "last"
	}
	page := s.get("/api/v1/overview")
	var o struct {
		Warnings []struct{ Grade, Title, Text, Command string }
	}
	err := json.Unmarshal(page, &o)
	var text strings.Builder
	for _, w := range o.Warnings {
		fmt.Fprintf(&text, "%s: %s: %s [%s]\n", w.Grade, w.Title, w.Text, w.Command)
	}
	fmt.Fprintf(&text, "%v %s\n", err, page)
	s.mu.Lock()
	answers := strings.Join(s.answers, "\n")
	s.mu.Unlock()
	all := map[string]string{"page": text.String(), "status": s.command("status"), "top": s.command("top", "-n", "1"),
		"why": s.command("why", about), "log": s.router.Log(1 << 20), "client": answers,
		"metrics": string(s.get("/metrics")), "alert": s.watch.alerts(s.router.Admin)}
	for name, text := range all {
		s.write(name+".txt", text)
	}
	return all
}

func (s *scene) close() {
	for _, c := range s.closers {
		c.Close()
	}
	s.router.Stop()
	for _, p := range s.procs {
		p.Signal(syscall.SIGCONT)
		p.Stop()
	}
}

// stopRedis has the Redis of the configuration answer nothing any more.
func (s *scene) stopRedis() { s.procs["redis"].Signal(syscall.SIGSTOP) }
