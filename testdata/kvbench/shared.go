package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"golang.org/x/sys/unix"
)

// compareShared measures reads at the HyperPod door: a lease, a copy out of shared memory, a release. Beside it stands
// the copy alone, of as many values of the reader's own memory.
func compareShared(s *server, t turn, rounds int) (figure, error) {
	f := figure{Name: t.name("shared memory, read"), Least: 0.5}
	var rates [2][]float64
	list := make([]*reader, t.clients)
	for i := range list {
		r, err := newReader(s, i, t)
		if err != nil {
			return f, err
		}
		defer r.close()
		list[i] = r
	}
	for round := range rounds + 1 {
		for k := range 2 {
			i := (k + round) % 2
			rate, err := readTogether(list, t, i == 0)
			if err != nil {
				return f, fmt.Errorf("%s: %w", s.name, err)
			}
			if round > 0 {
				rates[i] = append(rates[i], rate)
			}
		}
	}
	f.Ratio, f.Warmpath, f.Other = middle(quotients(rates[0], rates[1])), middle(rates[0]), middle(rates[1])
	f.OK = f.Ratio >= f.Least
	return f, nil
}

func readTogether(list []*reader, t turn, leased bool) (rate float64, err error) {
	took, err := together(list, func(r *reader) error {
		for i := range r.values {
			if !leased {
				copy(r.got, r.own[i*t.size:][:t.size])
				continue
			}
			if err := r.read(i); err != nil {
				return err
			}
		}
		return nil
	})
	return float64(len(list[0].values)) * float64(len(list)) * float64(t.size) / took.Seconds() / 1e9, err
}

// reader is a worker that has put its values.
type reader struct {
	conn   net.Conn
	in     *bufio.Reader
	mem    []byte // the segment
	own    []byte // the same values in memory of this process
	got    []byte
	values []string // their paths
}

func newReader(s *server, id int, t turn) (*reader, error) {
	each := t.each()
	r := &reader{own: make([]byte, each*t.size), got: make([]byte, t.size)}
	for i := range r.own {
		r.own[i] = byte(i>>3 ^ i*7 ^ i>>12)
	}
	file, err := os.Open(s.segment)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return nil, err
	}
	r.mem, err = unix.Mmap(int(file.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, err
	}
	r.conn, err = net.Dial("tcp", s.addr)
	if err != nil {
		return nil, err
	}
	r.in = bufio.NewReader(r.conn)
	for i := range each {
		path := fmt.Sprintf("/v1/kv/kvbench/%d-%d-%d", t.size, id, i)
		if _, err := r.ask("PUT", path, r.own[i*t.size:][:t.size], http.StatusOK, http.StatusConflict); err != nil {
			return nil, err
		}
		r.values = append(r.values, path)
	}
	for i := range each {
		if err := r.read(i); err != nil {
			return nil, err
		}
		if string(r.got) != string(r.own[i*t.size:][:t.size]) {
			return nil, fmt.Errorf("%s: other bytes came back", r.values[i])
		}
	}
	return r, nil
}

func (r *reader) close() {
	_ = unix.Munmap(r.mem)
	r.conn.Close()
}

// read copies a value out of the segment under a lease.
func (r *reader) read(i int) error {
	body, err := r.ask("POST", r.values[i]+"/leases?ttl_s=30", nil, http.StatusOK)
	if err != nil {
		return err
	}
	var granted struct {
		ID      string
		Offsets []struct{ Offset, Len int }
	}
	if err := json.Unmarshal(body, &granted); err != nil {
		return err
	}
	n := 0
	for _, o := range granted.Offsets {
		n += copy(r.got[n:], r.mem[o.Offset:o.Offset+o.Len])
	}
	if n != len(r.got) {
		return fmt.Errorf("%s has %d bytes", r.values[i], n)
	}
	_, err = r.ask("POST", "/v1/leases/"+granted.ID+"/release", nil, http.StatusOK)
	return err
}

func (r *reader) ask(method, path string, body []byte, good ...int) ([]byte, error) {
	head := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: kv\r\nContent-Length: %d\r\n\r\n", method, path, len(body))
	buffers := net.Buffers{head, body}
	if _, err := buffers.WriteTo(r.conn); err != nil {
		return nil, err
	}
	a, err := http.ReadResponse(r.in, nil)
	if err != nil {
		return nil, err
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return nil, err
	}
	for _, status := range good {
		if a.StatusCode == status {
			return text, nil
		}
	}
	return nil, fmt.Errorf("%s %s: %s %s", method, path, a.Status, text)
}
