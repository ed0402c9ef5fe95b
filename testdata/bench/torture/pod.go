package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// window is a worker's view of the shared memory, mapped once.
type window struct {
	mem   []byte
	inode uint64
	path  string
}

func openWindow(s *site) (*window, error) {
	w := &window{path: "/dev/shm/" + s.segment}
	f, err := os.Open(w.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	w.inode = st.Sys().(*syscall.Stat_t).Ino
	w.mem, err = unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	return w, err
}

// check: the name must lead to the same file for as long as a worker has it mapped.
func (w *window) check() error {
	st, err := os.Stat(w.path)
	if err != nil {
		return err // deleted a moment ago: it comes back
	}
	if now := st.Sys().(*syscall.Stat_t).Ino; now != w.inode {
		return wrong{fmt.Errorf("%s was inode %d and is %d", w.path, w.inode, now)}
	}
	return nil
}

// podMove is one command at the HyperPod listener.
func (p *player) podMove(w *window) error {
	key, h := p.pick()
	_ = p.conn.SetDeadline(time.Now().Add(30 * time.Second))
	switch n := p.rnd.IntN(100); {
	case n < 40:
		return p.podPut(key, h)
	case n < 97:
		return p.podGet(w, key, h, n < 94)
	case n == 97:
		_ = os.Remove(w.path) // as a worker on Python before 3.13 does when it exits
		return nil
	case n == 98:
		return w.check()
	}
	p.game.broken.Add(1)
	h.sent++
	v := value(key, h.sent)
	part := v[:p.rnd.IntN(len(v))]
	fmt.Fprintf(p.conn, "PUT /v1/kv/b/%s HTTP/1.1\r\nHost: kv\r\nContent-Length: %d\r\n\r\n%s", key, len(v), part)
	return errors.New("broken off")
}

// ask sends a request and returns what is answered. A status that is not among the good ones is wrong.
func (p *player) ask(method, path string, body []byte, good ...int) (status int, text []byte, err error) {
	head := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: kv\r\nContent-Length: %d\r\n\r\n", method, path, len(body))
	buffers := net.Buffers{head, body}
	if _, err := buffers.WriteTo(p.conn); err != nil {
		return 0, nil, err
	}
	a, err := http.ReadResponse(p.in, nil)
	if err != nil {
		return 0, nil, err
	}
	defer a.Body.Close()
	text, err = io.ReadAll(a.Body)
	if err == nil && !slices.Contains(good, a.StatusCode) {
		err = wrong{fmt.Errorf("%s %s: %s: %s", method, path, a.Status, text)}
	}
	return a.StatusCode, text, err
}

func (p *player) podPut(key string, h *history) error {
	h.sent++
	version := h.sent
	status, _, err := p.ask("PUT", "/v1/kv/b/"+key, value(key, version), 200, 409, 503, 507)
	switch {
	case err != nil:
		return err
	case status == http.StatusOK:
		h.least = version
		p.game.puts.Add(1)
	case status > 500:
		p.game.refused.Add(1)
	}
	return nil
}

// podGet reads a value in place under a lease, which it may never give back.
func (p *player) podGet(w *window, key string, h *history, release bool) error {
	p.game.gets.Add(1)
	status, text, err := p.ask("POST", "/v1/kv/b/"+key+"/leases?ttl_s=3", nil, 200, 404)
	if err != nil || status != http.StatusOK {
		return err
	}
	until := time.Now().Add(2500 * time.Millisecond)
	p.game.leases.Add(1)
	var g struct {
		ID      string
		Offsets []struct{ Offset, Len int }
	}
	if err := json.Unmarshal(text, &g); err != nil {
		return wrong{err}
	}
	time.Sleep(time.Duration(p.rnd.IntN(20)) * time.Millisecond)
	life := p.site.life.Load()
	var got []byte
	for _, o := range g.Offsets {
		got = append(got, w.mem[o.Offset:o.Offset+o.Len]...)
	}
	if time.Now().After(until) || p.site.life.Load() != life {
		return nil // the lease may have been over while the bytes were copied
	}
	if err := p.judge(key, h, got); err != nil {
		return err
	}
	if !release {
		return nil
	}
	_, _, err = p.ask("POST", "/v1/leases/"+g.ID+"/release", nil, 200, 404)
	return err
}
