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

// run returns GB/s of puts and of gets.
func (t turn) run(addr string) (put, get float64, err error) {
	each := max(int(min(t.budget/int64(t.size), 20_000))/t.clients, 2)
	list := make([]*client, t.clients)
	for i := range list {
		list[i], err = newClient(addr, i, t.size)
		if err != nil {
			return 0, 0, err
		}
		defer list[i].conn.Close()
	}
	bytes := float64(each) * float64(t.clients) * float64(t.size)
	took, err := together(list, func(c *client) error { return c.put(each) })
	if err != nil {
		return 0, 0, err
	}
	put = bytes / took.Seconds() / 1e9
	took, err = together(list, func(c *client) error { return c.get(each) })
	return put, bytes / took.Seconds() / 1e9, err
}

func together(list []*client, do func(*client) error) (time.Duration, error) {
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
			return fmt.Errorf("SET answers %q, %w", line, err)
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
		if err != nil || line != fmt.Sprintf("$%d\r\n", len(c.value)) {
			return fmt.Errorf("GET %s answers %q, %w", key, line, err)
		}
		if _, err := io.ReadFull(c.in, c.got); err != nil {
			return err
		}
		if _, err := c.in.Discard(2); err != nil {
			return err
		}
	}
	if n > 0 && string(c.got) != string(c.value) {
		return fmt.Errorf("GET of %d bytes: other bytes came back", len(c.got))
	}
	return nil
}
