package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/warmpath/warmpath/testdata/rig"
)

// limit is a server that keeps values and does nothing else: no eviction, no bound, no lease that pins, one read for
// most of a value and one write. What LMCache gets of it is about the most that its own code lets it get.
type limit struct {
	mu     sync.Mutex
	values map[string][]byte
	free   []byte // of the segment, or nil: values stand in memory of their own
	base   []byte // the segment
}

// kept is the second name of the limit's segment: a client may delete the first one.
func kept(segment string) string { return filepath.Join("/dev/shm", segment+"-kept") }

// giveName gives the limit's segment its name again, if a client has deleted it.
func giveName(segment string) error {
	err := os.Link(kept(segment), filepath.Join("/dev/shm", segment))
	if os.IsExist(err) {
		return nil
	}
	return err
}

// forget removes the limit's segment.
func forget(segment string) {
	_ = os.Remove(kept(segment))
	_ = os.Remove(filepath.Join("/dev/shm", segment))
}

// serveLimit serves RESP at one address, and the HyperPod protocol with a segment of that name at the other.
func serveLimit(resp, pod, segment string) error {
	file, err := os.Create(kept(segment))
	if err != nil {
		return err
	}
	const size = 2 << 30
	if err := file.Truncate(size); err != nil {
		return err
	}
	base, err := unix.Mmap(int(file.Fd()), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	pods := &limit{values: map[string][]byte{}, free: base, base: base}
	values := &limit{values: map[string][]byte{}}
	ended := make(chan error, 2)
	go func() { ended <- serveConnections(resp, func() serveOne { return (&talk{values, "$-1\r\n"}).command }) }()
	go func() { ended <- serveConnections(pod, func() serveOne { return pods.request }) }()
	return <-ended
}

// serveOne answers one request.
type serveOne func(in *bufio.Reader, out *os.File) error

// serveConnections gives each connection a goroutine that reads with system calls that block, until its own serveOne
// fails.
func serveConnections(address string, begin func() serveOne) error {
	return rig.ServeBlocking(address, func(f *os.File) {
		in, serve := bufio.NewReaderSize(f, 4<<10), begin()
		var err error
		for err == nil {
			err = serve(in, f)
		}
		if err != io.EOF {
			fmt.Fprintln(os.Stderr, "doors: the server that shows the limit:", err)
		}
	})
}

// room returns memory for a value: that of the value before, if it has the size.
func (s *limit) room(key string, size int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.values[key]; len(v) == size {
		return v, nil
	}
	if s.base == nil {
		return make([]byte, size), nil
	}
	if size > len(s.free) {
		return nil, fmt.Errorf("no room for %d bytes", size)
	}
	v := s.free[:size] // its capacity tells where it stands
	s.free = s.free[size:]
	return v, nil
}

// read reads the value of a key into its place.
func (s *limit) read(in *bufio.Reader, key string, size int) error {
	v, err := s.room(key, size)
	if err != nil {
		return err
	}
	if _, err := io.ReadFull(in, v); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.values[key] = v
	return nil
}

func (s *limit) value(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.values[key]
	return v, ok
}

// count reads a line like "*3" or "$512".
func count(in *bufio.Reader, kind byte) (int, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, err
	}
	if line[0] != kind {
		return 0, fmt.Errorf("%q in place of a line that begins with %c", line, kind)
	}
	return strconv.Atoi(strings.TrimSpace(line[1:]))
}

// talk is one connection of Redis's protocol.
type talk struct {
	*limit
	null string // as its version of the protocol has it
}

// command answers one command.
func (s *talk) command(in *bufio.Reader, out *os.File) error {
	words, err := count(in, '*')
	if err != nil {
		return err
	}
	var list []string
	for i := range words {
		size, err := count(in, '$')
		if err != nil {
			return err
		}
		if i == 2 && strings.EqualFold(list[0], "SET") {
			if err := s.read(in, list[1], size); err != nil {
				return err
			}
		} else {
			word := make([]byte, size)
			if _, err := io.ReadFull(in, word); err != nil {
				return err
			}
			list = append(list, string(word))
		}
		if _, err := in.Discard(2); err != nil {
			return err
		}
	}
	answer := net.Buffers{[]byte("+OK\r\n")} // SET, CLIENT, SELECT
	switch strings.ToUpper(list[0]) {
	case "HELLO": // 3, or redis-py says none
		s.null = "_\r\n"
		answer[0] = []byte("%3\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.0.0\r\n$5\r\nproto\r\n:3\r\n")
	case "PING":
		answer[0] = []byte("+PONG\r\n")
	case "EXISTS":
		found := 0
		if _, ok := s.value(list[1]); ok {
			found = 1
		}
		answer[0] = fmt.Appendf(nil, ":%d\r\n", found)
	case "GET":
		answer[0] = []byte(s.null)
		if v, ok := s.value(list[1]); ok {
			answer = net.Buffers{fmt.Appendf(nil, "$%d\r\n", len(v)), v, []byte("\r\n")}
		}
	}
	return rig.WriteAll(out, answer)
}

// head is what is read of the head of a HTTP request.
type head struct {
	method, path string
	size         int // of the body
}

func readHead(in *bufio.Reader, out *os.File) (h head, err error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return h, err
	}
	method, target, _ := strings.Cut(line, " ")
	target, _, _ = strings.Cut(target, " ")
	h.method = method
	h.path, _, _ = strings.Cut(target, "?")
	for {
		field, err := in.ReadString('\n')
		if err != nil {
			return h, err
		}
		name, value, more := strings.Cut(strings.TrimSpace(field), ":")
		switch {
		case !more:
			return h, nil
		case strings.EqualFold(name, "Content-Length"):
			h.size, err = strconv.Atoi(strings.TrimSpace(value))
		case strings.EqualFold(name, "Transfer-Encoding"):
			err = fmt.Errorf("%s has a body in chunks", line)
		case strings.EqualFold(name, "Expect"):
			_, err = io.WriteString(out, "HTTP/1.1 100 Continue\r\n\r\n")
		}
		if err != nil {
			return h, err
		}
	}
}

// request answers one request of the HyperPod protocol (daemon/kv/hyperpod/doc.go). A value keeps its place for ever,
// so a lease is nothing but the place.
func (s *limit) request(in *bufio.Reader, out *os.File) error {
	h, err := readHead(in, out)
	if err != nil {
		return err
	}
	path, lease := strings.CutSuffix(h.path, "/leases")
	key, err := url.PathUnescape(path)
	if err != nil {
		return err
	}
	if h.method == http.MethodPut {
		err = s.read(in, key, h.size)
	} else {
		_, err = in.Discard(h.size)
	}
	if err != nil {
		return err
	}
	status, body := http.StatusOK, []byte("{}")
	if v, ok := s.value(key); lease && ok {
		body = fmt.Appendf(nil, `{"id":"1","offsets":[{"offset":%d,"len":%d}]}`, cap(s.base)-cap(v), len(v))
	} else if lease {
		status = http.StatusNotFound
	}
	const text = "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
	return rig.WriteAll(out, [][]byte{fmt.Appendf(nil, text, status, http.StatusText(status), len(body), body)})
}
