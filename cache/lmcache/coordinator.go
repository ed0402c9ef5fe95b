package lmcache

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bind"
	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/cache/parts/webpage"
)

// coordinator answers LMCache's multi-process servers (lmcache/v1/mp_coordinator of 0.5.6): who is there, and what each
// stores and deletes.
type coordinator struct {
	fleet *fleet
	on    net.Listener
	http  *http.Server
	done  sync.WaitGroup
	held  *quota.Bytes // of what requests unfold into
}

// What a server may send. It publishes once a second and gives up after 2 s.
const (
	maxBody      = 64 << 20
	maxQuestion  = 8 << 20 // bytes of a look-up
	maxIntro     = 8 << 10 // bytes of a registration
	maxBodyConns = 1024
)

func newCoordinator(addr string, binder bind.Binder, f *fleet) (*coordinator, error) {
	on, err := bind.Or(binder).Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &coordinator{fleet: f, on: &crowdedListener{Listener: on, places: make(chan struct{}, maxBodyConns)},
		held: quota.New(heldItems)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /instances", c.register)
	mux.HandleFunc("GET /instances", c.list)
	mux.HandleFunc("PUT /instances/{id}/heartbeat", c.heartbeat)
	mux.HandleFunc("DELETE /instances/{id}", c.deregister)
	for _, path := range []string{"/events", "/l2/events", "/directory/events"} { // 0.5.6, 0.5.0, 0.5.3
		mux.HandleFunc("POST "+path, c.events)
	}
	mux.HandleFunc("POST /directory/lookup", c.lookup)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		write(w, map[string]string{"status": "ok"})
	})
	c.http = &http.Server{Handler: c.workersOnly(mux), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10}
	c.done.Go(func() { _ = c.http.Serve(c.on) })
	return c, nil
}

// workersOnly refuses what web pages send.
func (c *coordinator) workersOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if webpage.Sends(r.Header) {
			http.Error(w, webpage.Refusal, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *coordinator) addr() string { return c.on.Addr().String() }

func (c *coordinator) close() {
	_ = c.http.Close()
	c.done.Wait()
}

// crowdedListener holds so many connections at a time. It closes further ones at once.
type crowdedListener struct {
	net.Listener
	places chan struct{}
}

// Accept implements net.Listener.
func (l *crowdedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &placedConn{Conn: conn, places: l.places}, nil
		default:
			conn.Close()
		}
	}
}

type placedConn struct {
	net.Conn
	places <-chan struct{}
	once   sync.Once
}

// Close implements net.Conn.
func (c *placedConn) Close() error {
	defer c.once.Do(func() { <-c.places })
	return c.Conn.Close()
}

func write(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// refuse answers what is not understood, as FastAPI does.
func (c *coordinator) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusUnprocessableEntity
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		status = http.StatusRequestEntityTooLarge
	}
	if errors.Is(err, quota.ErrFull) {
		status = http.StatusServiceUnavailable
	}
	c.fleet.refuse("http "+hostOfRequest(r), "a message to the LMCache coordinator is dropped", "peer", r.RemoteAddr,
		"path", r.URL.Path, "error", err,
		"remedy", "LMCache 0.5.0 to 0.5.6 is understood; look whether the peer is its server")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": err.Error()})
}

func hostOfRequest(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

func (c *coordinator) register(w http.ResponseWriter, r *http.Request) {
	var body struct {
		ID   string `json:"instance_id"`
		IP   string `json:"ip"`
		Port int    `json:"http_port"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxIntro)).Decode(&body)
	id, ip := strings.TrimSpace(body.ID), strings.TrimSpace(body.IP)
	switch {
	case err != nil:
	case ip == "" || len(id) > maxName || len(ip) > maxName:
		err = errors.New("want ip, and names of 256 bytes at most")
	case id == "":
		id = fmt.Sprintf("mp-%s:%d", ip, body.Port) // the same again when it registers again
	}
	known := false
	if err == nil {
		known, err = c.fleet.enroll(id, ip, hostOfRequest(r), time.Now())
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	write(w, struct {
		ID    string `json:"instance_id"`
		Again bool   `json:"re_registered"`
	}{id, known})
}

func (c *coordinator) heartbeat(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if c.fleet.alive(id, time.Now()) {
		write(w, map[string]string{"instance_id": id})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": "unknown instance; re-register"})
}

func (c *coordinator) deregister(w http.ResponseWriter, r *http.Request) {
	c.fleet.dismiss(r.PathValue("id"))
	w.WriteHeader(http.StatusNoContent)
}

// list writes the servers one by one.
func (c *coordinator) list(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"instances":[`)
	to, between := json.NewEncoder(w), ""
	for _, s := range statsOf(c.fleet).Instances {
		if s.Kind != "server" {
			continue
		}
		_, _ = io.WriteString(w, between)
		between = ","
		if to.Encode(map[string]any{"instance_id": s.ID, "ip": s.Address, "keys": s.Keys}) != nil {
			return
		}
	}
	_, _ = io.WriteString(w, "]}\n")
}

// events takes the batches of a request one by one, so that only one is in memory.
func (c *coordinator) events(w http.ResponseWriter, r *http.Request) {
	x := newItems(http.MaxBytesReader(w, r.Body, maxBody), c.held)
	defer x.close()
	var counts [3]int
	err := x.batches(func(b *batch) error {
		v, err := c.fleet.take(b, time.Now())
		counts[v]++
		return err
	})
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	write(w, map[string]int{"applied": counts[applied], "duplicates": counts[duplicate],
		"stale": counts[staleIncarnation]})
}

func (c *coordinator) lookup(w http.ResponseWriter, r *http.Request) {
	x := newItems(http.MaxBytesReader(w, r.Body, maxQuestion), c.held)
	defer x.close()
	l, err := x.lookup()
	var sums [][]byte
	if err == nil {
		sums, err = l.sums(c.fleet)
	}
	if err != nil {
		c.refuse(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	l.answer(c.fleet, sums, w)
}
