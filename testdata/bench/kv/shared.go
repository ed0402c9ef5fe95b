package main

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// compareShared measures reads at the HyperPod listener: a lease, a copy out of shared memory, a release. Beside it
// stands the copy alone, of as many values of the reader's own memory, and the same reads with leases of the null
// server: what two round trips take on this machine.
func compareShared(all *servers, t turn, rounds int) (figure, error) {
	f := figure{Name: t.name("shared memory, read"), Least: 0.5}
	ours, err := newReaders(all.pod, all.pod.segment, t)
	defer closeAll(ours)
	if err != nil {
		return f, err
	}
	null, err := newReaders(all.null, all.pod.segment, t)
	defer closeAll(null)
	if err != nil {
		return f, err
	}
	turns := []func() (float64, error){
		func() (float64, error) { return readTogether(ours, t, true) },
		func() (float64, error) { return readTogether(ours, t, false) },
		func() (float64, error) { return readTogether(null, t, true) },
	}
	var rates [3][]float64
	for round := range rounds + 1 {
		for k := range turns {
			i := (k + round) % len(turns)
			rate, err := turns[i]()
			if err != nil {
				return f, err
			}
			if round > 0 {
				rates[i] = append(rates[i], rate)
			}
		}
	}
	f.Warmpath, f.Other, f.Limit = middle(rates[0]), middle(rates[1]), middle(rates[2])
	f.Ratio, f.Share = middle(quotients(rates[0], rates[1])), middle(quotients(rates[0], rates[2]))
	f.OK = f.Ratio >= f.Least
	if !f.OK && f.Share >= clientBound {
		f.OK, f.Note = true, "two round trips are the limit"
	}
	return f, nil
}

// newReaders starts the clients of a turn. After an error those that have begun are to be closed all the same.
func newReaders(s *server, segment string, t turn) (list []*reader, err error) {
	for i := range t.clients {
		r, err := newReader(s, segment, i, t)
		if err != nil {
			return list, fmt.Errorf("%s: %w", s.Name, err)
		}
		list = append(list, r)
	}
	return list, nil
}

func closeAll(list []*reader) {
	for _, r := range list {
		r.close()
	}
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

// reader is a worker that has put its values. It speaks HTTP by hand, with calls that block: what net/http and the
// scheduler take on its side is no worker's, which are written in Python and C.
type reader struct {
	fd     int
	in     []byte // the answer under way
	out    []byte // the request under way
	mem    []byte // the segment
	own    []byte // the same values in memory of this process
	got    []byte
	values []string // their paths
}

func newReader(s *server, segment string, id int, t turn) (*reader, error) {
	each := t.each()
	r := &reader{own: make([]byte, each*t.size), got: make([]byte, t.size), in: make([]byte, 16<<10)}
	for i := range r.own {
		r.own[i] = byte(i>>3 ^ i*7 ^ i>>12)
	}
	file, err := os.Open(segment)
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
	c, err := newAsker(s.Addr, false)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	r.fd, err = c.block()
	if err != nil {
		return nil, err
	}
	for i := range each {
		path := fmt.Sprintf("/v1/kv/kvbench/%d-%d-%d", t.size, id, i)
		if _, err := r.ask("PUT", path, r.own[i*t.size:][:t.size], http.StatusOK, http.StatusConflict); err != nil {
			return nil, err
		}
		r.values = append(r.values, path+"/leases?ttl_s=30")
	}
	for i := range each {
		if err := r.read(i); err != nil {
			return nil, err
		}
		if !s.null && string(r.got) != string(r.own[i*t.size:][:t.size]) {
			return nil, fmt.Errorf("%s: other bytes came back", r.values[i])
		}
	}
	return r, nil
}

func (r *reader) close() {
	_ = unix.Munmap(r.mem)
	syscall.Close(r.fd)
}

// read copies a value out of the segment under a lease.
func (r *reader) read(i int) error {
	body, err := r.ask("POST", r.values[i], nil, http.StatusOK)
	if err != nil {
		return err
	}
	id, rest, _ := strings.Cut(strings.TrimPrefix(body, `{"id":"`), `"`)
	n := 0
	for {
		var offset, length int
		var more bool
		_, rest, more = strings.Cut(rest, `"offset":`)
		if !more {
			break
		}
		offset, rest = leadingNumber(rest)
		length, rest = leadingNumber(strings.TrimPrefix(rest, `,"len":`))
		n += copy(r.got[n:], r.mem[offset:offset+length])
	}
	if n != len(r.got) {
		return fmt.Errorf("%s has %d bytes: %s", r.values[i], n, body)
	}
	_, err = r.ask("POST", "/v1/leases/"+id+"/release", nil, http.StatusOK)
	return err
}

// leadingNumber reads the digits that text begins with.
func leadingNumber(text string) (n int, rest string) {
	for text != "" && text[0] >= '0' && text[0] <= '9' {
		n = n*10 + int(text[0]-'0')
		text = text[1:]
	}
	return n, text
}

// ask sends a request and returns the body of its answer, which is short.
func (r *reader) ask(method, path string, body []byte, good ...int) (string, error) {
	r.out = append(append(append(r.out[:0], method...), ' '), path...)
	r.out = append(r.out, " HTTP/1.1\r\nHost: kv\r\nContent-Length: "...)
	r.out = append(strconv.AppendInt(r.out, int64(len(body)), 10), "\r\n\r\n"...)
	for _, p := range [][]byte{r.out, body} {
		for len(p) > 0 {
			n, err := syscall.Write(r.fd, p)
			if err != nil {
				return "", err
			}
			p = p[n:]
		}
	}
	got := 0
	for got < len(r.in) {
		n, err := syscall.Read(r.fd, r.in[got:])
		if err != nil || n == 0 {
			return "", fmt.Errorf("%s %s: the answer breaks off: %w", method, path, err)
		}
		got += n
		head, text, whole := strings.Cut(string(r.in[:got]), "\r\n\r\n")
		if !whole {
			continue
		}
		_, length, _ := strings.Cut(head, "\r\nContent-Length: ")
		if size, _ := leadingNumber(length); len(text) < size {
			continue
		}
		status, _ := leadingNumber(strings.TrimPrefix(head, "HTTP/1.1 "))
		if !slices.Contains(good, status) {
			break
		}
		return text, nil
	}
	return "", fmt.Errorf("%s %s: %.300s", method, path, r.in[:got])
}
