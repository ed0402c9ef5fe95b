package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/logtest"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// stage is the processes of one run.
type stage struct {
	o       *options
	s       scene
	dir     string
	fleet   vllmsim.Fleet
	quick   vllmsim.Fleet // of a pool of its own, and takes no time
	redis   *exec.Cmd
	routers []*router

	changing sync.Mutex // guards the elements of routers

	proxy  *http.Server
	client *http.Client
}

// router is a process.
type router struct {
	cmd        *exec.Cmd
	out        *logtest.Log // both of its outputs
	url, admin string
}

func newStage(o *options, s scene) (st *stage, err error) {
	st = &stage{o: o, s: s, client: &http.Client{Timeout: 5 * time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 512}}}
	defer func() {
		if err != nil {
			st.close()
		}
	}()
	st.dir, err = os.MkdirTemp("", "peersbench")
	if err != nil {
		return st, err
	}
	st.fleet, err = newFleet(o)
	if err != nil {
		return st, err
	}
	st.quick, err = vllmsim.StartFleet("127.0.0.1:0", 1, vllmsim.Config{Speed: 1000, Models: []string{"quick"}})
	if err != nil {
		return st, err
	}
	if s.share {
		st.redis = exec.Command("redis-server", "--port", "0", "--unixsocket", st.socket(), "--dir", st.dir, "--save", "")
		if err := st.redis.Start(); err != nil {
			return st, err
		}
	}
	for i := range s.routers {
		r, err := st.startRouter(i)
		if err != nil {
			return st, err
		}
		st.routers = append(st.routers, r)
	}
	for _, r := range st.routers {
		if err := st.awaitReady(r); err != nil {
			return st, err
		}
	}
	time.Sleep(1500 * time.Millisecond) // until each has received the others' messages
	return st, nil
}

func (st *stage) socket() string { return filepath.Join(st.dir, "r.sock") }

var listens = regexp.MustCompile(`msg=serving.* listen=(\S+) admin=(\S+)`)

func (st *stage) startRouter(i int) (*router, error) {
	var c strings.Builder
	fmt.Fprintf(&c, "[server]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\npprof = %v\n", st.o.profile != "")
	if st.o.fault == "state" {
		fmt.Fprintf(&c, "state_file = %q\n", filepath.Join(st.dir, fmt.Sprint(i, ".state")))
	}
	redis := "off"
	if st.s.share {
		redis = "unix://" + st.socket()
	}
	fmt.Fprintf(&c, "[history]\nname = \"router-%d\"\nredis = %q\n", i, redis)
	fmt.Fprintf(&c, "[[pools]]\nname = \"main\"\nmodels = [\"sim\"]\n")
	for k, u := range st.fleet.URLs() {
		fmt.Fprintf(&c, "[[pools.workers]]\nid = \"w%d\"\nurl = %q\n", k, u)
	}
	if st.o.fault != "" {
		fmt.Fprintf(&c, "[[pools]]\nname = \"quick\"\nmodels = [\"quick\"]\n[[pools.workers]]\nid = \"quick\"\nurl = %q\n",
			st.quick.URLs()[0])
	}
	file := filepath.Join(st.dir, fmt.Sprintf("%d.toml", i))
	if err := os.WriteFile(file, []byte(c.String()), 0o600); err != nil {
		return nil, err
	}
	r := &router{cmd: exec.Command(st.o.bin, "serve", "--config", file), out: &logtest.Log{}}
	r.cmd.Stderr, r.cmd.Stdout = r.out, r.out
	return r, r.cmd.Start()
}

func (st *stage) awaitReady(r *router) error {
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		m := listens.FindStringSubmatch(r.out.String())
		if m == nil {
			continue
		}
		r.url, r.admin = "http://"+m[1], "http://"+m[2]
		resp, err := st.client.Get(r.url + "/ready")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == 200 {
				return nil
			}
		}
	}
	return errors.New("a router is not ready within a minute:\n" + r.out.String())
}

// spread serves the routers behind one address, and gives each request to one of them by chance.
func (st *stage) spread() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p := &httputil.ReverseProxy{FlushInterval: -1, Transport: st.client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			u, _ := url.Parse(st.routers[rand.IntN(len(st.routers))].url)
			r.SetURL(u)
		}}
	st.proxy = &http.Server{Handler: p}
	go func() { _ = st.proxy.Serve(l) }()
	return "http://" + l.Addr().String(), nil
}

func (st *stage) close() {
	if st.proxy != nil {
		_ = st.proxy.Shutdown(context.Background())
	}
	for _, r := range st.routers {
		r.kill()
	}
	if st.redis != nil && st.redis.Process != nil {
		_ = st.redis.Process.Kill()
		_ = st.redis.Wait()
	}
	st.fleet.Close()
	st.quick.Close()
	os.RemoveAll(st.dir)
}

// lag returns the largest lag that a router shows now, in seconds.
func (st *stage) lag() (most float64) {
	for _, r := range st.routers {
		resp, err := st.client.Get(r.admin + "/api/v1/routers")
		if err != nil {
			continue
		}
		var page struct {
			Pools []struct {
				Routers []struct {
					Lag float64 `json:"lag_seconds"`
				}
			}
		}
		_ = json.NewDecoder(resp.Body).Decode(&page)
		resp.Body.Close()
		for _, p := range page.Pools {
			for _, o := range p.Routers {
				most = max(most, o.Lag)
			}
		}
	}
	return most
}

func (r *router) kill() {
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
}
