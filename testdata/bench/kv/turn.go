package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// turn is one measurement: every client puts its values, then every client gets them.
type turn struct {
	clients, size int
	budget        int64
}

// rate is the result of one direction of a turn.
type rate struct {
	speed float64 // GB/s
	cpu   float64 // microseconds of the server for a value
}

// run puts, then gets.
func (t turn) run(s *server) (put, get rate, err error) {
	list := make([]*client, t.clients)
	for i := range list {
		list[i], err = newClient(s.Addr, i, t.size)
		if err != nil {
			return put, get, err
		}
		list[i].loose = s.null
		defer list[i].conn.Close()
	}
	put, err = t.measure(s, list, (*client).put)
	if err != nil {
		return put, get, err
	}
	get, err = t.measure(s, list, (*client).get)
	return put, get, err
}

func (t turn) measure(s *server, list []*client, do func(*client, int) error) (rate, error) {
	cpu := s.CPU()
	took, err := together(list, func(c *client) error { return do(c, t.each()) })
	values := float64(t.each() * t.clients)
	for _, c := range list {
		values -= float64(c.missed)
	}
	used := s.CPU() - cpu
	return rate{speed: values * float64(t.size) / took.Seconds() / 1e9, cpu: float64(used.Microseconds()) / values}, err
}

// each returns how many values a client has.
func (t turn) each() int { return max(int(min(t.budget/int64(t.size), 20_000))/t.clients, 2) }

func together[T any](list []T, do func(T) error) (time.Duration, error) {
	var wg sync.WaitGroup
	errs := make([]error, len(list))
	start := time.Now()
	for i, c := range list {
		wg.Go(func() { errs[i] = do(c) })
	}
	wg.Wait()
	took := time.Since(start)
	for _, err := range errs {
		if err != nil {
			return took, err
		}
	}
	return took, nil
}

// client has one command under way.
type client struct {
	conn  net.Conn
	in    *bufio.Reader
	id    int
	value []byte
	got   []byte
	loose bool // any bytes will do: the null server's

	missed int // values that the server has evicted since they were put: Redis counts their age in seconds
}

func newClient(addr string, id, size int) (*client, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	value := make([]byte, size)
	for i := range value {
		value[i] = byte(i>>3 ^ i*7)
	}
	return &client{conn: c, in: bufio.NewReaderSize(c, 16<<10), id: id, value: value, got: make([]byte, size)}, nil
}

func (c *client) key(i int) string { return fmt.Sprintf("kvbench@%d@%d@%06d", len(c.value), c.id, i) }

func (c *client) put(n int) error {
	for i := range n {
		key := c.key(i)
		list := net.Buffers{fmt.Appendf(nil, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n", len(key), key, len(c.value)), c.value,
			[]byte("\r\n")}
		if _, err := list.WriteTo(c.conn); err != nil {
			return err
		}
		if line, err := c.in.ReadString('\n'); err != nil || line != "+OK\r\n" {
			return fmt.Errorf("SET answers %q, error %v", line, err)
		}
	}
	return nil
}

func (c *client) get(n int) error {
	for i := range n {
		key := c.key(i)
		if _, err := fmt.Fprintf(c.conn, "*2\r\n$3\r\nGET\r\n$%d\r\n%s\r\n", len(key), key); err != nil {
			return err
		}
		line, err := c.in.ReadString('\n')
		if line == "$-1\r\n" && c.missed < n/2 {
			c.missed++
			continue
		}
		if err != nil {
			return fmt.Errorf("GET %s: %w", key, err)
		}
		if line != fmt.Sprintf("$%d\r\n", len(c.value)) {
			return fmt.Errorf("GET %s answers %q", key, line)
		}
		if _, err := io.ReadFull(c.in, c.got); err != nil {
			return err
		}
		if _, err := c.in.Discard(2); err != nil {
			return err
		}
	}
	if n > 0 && !c.loose && string(c.got) != string(c.value) {
		return fmt.Errorf("GET of %d bytes: other bytes came back", len(c.got))
	}
	return nil
}
