package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
	"github.com/warmpath/warmpath/testdata/rig"
)

// stage is the processes of one run.
type stage struct {
	o       *options
	s       scene
	dir     string
	fleet   vllmsim.Fleet
	quick   vllmsim.Fleet // of a pool of its own, and takes no time
	redis   *rig.Proc
	routers []*rig.Proc

	changing sync.Mutex // guards the elements of routers

	proxy  *http.Server
	client *http.Client
}

func newStage(o *options, s scene) (st *stage, err error) {
	st = &stage{o: o, s: s, client: &http.Client{Timeout: 5 * time.Minute,
		Transport: &http.Transport{MaxIdleConnsPerHost: 512}}}
	defer func() {
		if err != nil {
			st.close()
		}
	}()
	st.dir, err = os.MkdirTemp(o.dir, "")
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
		st.redis, err = rig.Redis(st.dir, rig.FreeAddr(), "--unixsocket", st.socket())
		if err != nil {
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
	time.Sleep(1500 * time.Millisecond) // until each has received the others' messages
	return st, nil
}

func (st *stage) socket() string { return filepath.Join(st.dir, "r.sock") }

// startRouter starts the router of that number, and waits until it is ready.
func (st *stage) startRouter(i int) (*rig.Proc, error) {
	r := rig.Router{Server: fmt.Sprintf("pprof = %v\n", st.o.profile != ""), Pool: "name = \"main\"\nmodels = [\"sim\"]\n"}
	if st.o.fault == "state" {
		r.Server += fmt.Sprintf("state_file = %q\n", filepath.Join(st.dir, fmt.Sprint(i, ".state")))
	}
	redis := "off"
	if st.s.share {
		redis = "unix://" + st.socket()
	}
	r.Server += fmt.Sprintf("[history]\nname = \"router-%d\"\nredis = %q\n", i, redis)
	for _, u := range st.fleet.URLs() {
		r.Workers = append(r.Workers, strings.TrimPrefix(u, "http://"))
	}
	if st.o.fault != "" {
		r.Strategies = fmt.Sprintf("[[pools]]\nname = \"quick\"\nmodels = [\"quick\"]\n"+
			"[[pools.workers]]\nid = \"quick\"\nurl = %q\n", st.quick.URLs()[0])
	}
	return r.Start(st.dir, st.o.bin)
}

// spread serves the routers behind one address, and gives each request to one of them by chance.
func (st *stage) spread() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	p := &httputil.ReverseProxy{FlushInterval: -1, Transport: st.client.Transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			u, _ := url.Parse(st.routers[rand.IntN(len(st.routers))].URL())
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
		r.Stop()
	}
	st.redis.Stop()
	st.fleet.Close()
	st.quick.Close()
	os.RemoveAll(st.dir)
}

// lag returns the largest lag that a router shows now, in seconds.
func (st *stage) lag() (most float64) {
	for _, r := range st.routers {
		resp, err := st.client.Get("http://" + r.Admin + "/api/v1/routers")
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
