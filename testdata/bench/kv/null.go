package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/warmpath/warmpath/testdata/rig"
)

// startNull runs this program again as the server that the limit is measured with.
func startNull(dir string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr := rig.FreeAddr()
	p, err := rig.Start(dir, "null", addr, self, "-null", addr)
	if err != nil {
		return nil, err
	}
	return &server{Proc: p, null: true}, p.AwaitPort()
}

// serveNull answers SET without keeping the value and GET with the same bytes for each key: blocking system calls, one
// write for a value, a thread a client, memory that stays in the processor's cache. A lease is of some place in the
// segment, and its release changes nothing. No client can be faster than with it.
func serveNull(addr string) error {
	return rig.ServeBlocking(addr, func(f *os.File) {
		n := null{f: f, fd: int(f.Fd()), buf: make([]byte, 256<<10)}
		for n.command() == nil {
		}
	})
}

// null is one connection. A command's head arrives with one read, as the client writes it with one.
type null struct {
	f   *os.File
	fd  int
	buf []byte
}

func (n *null) command() error {
	got, err := syscall.Read(n.fd, n.buf[:64<<10])
	if err != nil || got == 0 {
		return fmt.Errorf("the client has left: %w", err)
	}
	if n.buf[0] == 'P' {
		return n.request(n.buf[:got])
	}
	words := bytes.SplitN(n.buf[:got], []byte("\r\n"), 7)
	size, err := sizeOf(words[4]) // kvbench@SIZE@CLIENT@NUMBER
	if err != nil {
		return err
	}
	if string(words[2]) == "SET" {
		head := got - len(words[6])
		if err := n.skip(head + size + 2 - got); err != nil {
			return err
		}
		return rig.WriteAll(n.f, [][]byte{[]byte("+OK\r\n")})
	}
	list := [][]byte{fmt.Appendf(nil, "$%d\r\n", size)}
	for rest := size; rest > 0; rest -= min(rest, len(n.buf)) {
		list = append(list, n.buf[:min(rest, len(n.buf))])
	}
	return rig.WriteAll(n.f, append(list, []byte("\r\n")))
}

// request answers PUT and POST of the HyperPod listener.
func (n *null) request(p []byte) error {
	head, body, _ := bytes.Cut(p, []byte("\r\n\r\n"))
	var length, size, client, number int
	_, text, _ := bytes.Cut(head, []byte("\r\nContent-Length: "))
	if _, err := fmt.Sscan(string(text), &length); err != nil {
		return err
	}
	if err := n.skip(length - len(body)); err != nil {
		return err
	}
	answer := "{}"
	if _, err := fmt.Sscanf(string(head), "POST /v1/kv/kvbench/%d-%d-%d/", &size, &client, &number); err == nil {
		place := (client*(32<<20) + number*size) % (memory - size)
		answer = fmt.Sprintf(`{"id":"1","offsets":[{"offset":%d,"len":%d}]}`, place, size)
	}
	return rig.WriteAll(n.f, [][]byte{
		fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)})
}

// skip reads bytes and throws them away.
func (n *null) skip(rest int) error {
	for rest > 0 {
		got, err := syscall.Read(n.fd, n.buf[:min(rest, len(n.buf))])
		if err != nil || got == 0 {
			return fmt.Errorf("the client has left: %w", err)
		}
		rest -= got
	}
	return nil
}

func sizeOf(key []byte) (int, error) {
	parts := bytes.Split(key, []byte("@"))
	if len(parts) != 4 {
		return 0, fmt.Errorf("%q is no key of kvbench", key)
	}
	return strconv.Atoi(string(parts[1]))
}
