package main

import (
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// startSelf starts this program in a role.
func (b *bench) startSelf(role, to string) (*rig.Proc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr := rig.FreeAddr()
	p, err := rig.Start(b.dir, role, addr, self, "-role", role, "-listen", addr, "-to", to)
	if err != nil {
		return nil, err
	}
	return p, p.Await("/health")
}

// start starts a proxy in front of the worker.
func (b *bench) start(name string) (*rig.Proc, error) {
	switch name {
	case "nginx":
		return rig.Nginx(b.dir, b.worker.Addr)
	case "haproxy":
		return rig.Haproxy(b.dir, b.worker.Addr)
	case "reverseproxy":
		return b.startSelf(name, b.worker.Addr)
	}
	dir, err := os.MkdirTemp(b.dir, name) // memory starts a second one
	if err != nil {
		return nil, err
	}
	p, err := rig.Router{Workers: []string{b.worker.Addr}}.Start(dir, b.bin[name])
	if err == nil {
		p.Name = name
	}
	return p, err
}

// serveWorker answers at once, and remembers for GET /gone when the client of which mark left: 0 if it has
// not.
func serveWorker(listen string) error {
	var mu sync.Mutex // guards gone
	gone := map[string]int64{}
	w := wire.Worker{Handle: func(c *wire.Call) bool {
		if c.Path == "/gone" {
			mu.Lock()
			b, _ := json.Marshal(gone)
			mu.Unlock()
			return c.Plain(200, "application/json", string(b))
		}
		mark := c.Mark()
		note := func(t int64) {
			if mark != "" {
				mu.Lock()
				gone[mark] = t
				mu.Unlock()
			}
		}
		note(0)
		keep := c.Answer()
		if !keep {
			note(time.Now().UnixNano())
		}
		return keep
	}}
	if err := w.Start(listen); err != nil {
		return err
	}
	select {} // until it is killed
}

// serveReverseProxy is Go's own, set up as one would for many keep-alive connections and for streams.
func serveReverseProxy(listen, to string) error {
	u, err := url.Parse("http://" + to)
	if err != nil {
		return err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.DisableCompression = 0, 1024, true
	return http.ListenAndServe(listen, &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport:     t,
		FlushInterval: -1,
	})
}
