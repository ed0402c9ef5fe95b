package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// slowProc starts n slow clients of a router as a process of their own, and waits until they are connected.
func (l *lab) slowProc(to string, n int) (*rig.Proc, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	addr := rig.FreeAddr()
	p, err := rig.Start(l.dir, "slow", addr, self, "-role", "slow", "-listen", addr, "-to", to, "-n", strconv.Itoa(n))
	if err != nil {
		return nil, err
	}
	l.procs = append(l.procs, p)
	return p, p.Await("/health")
}

// tell sets where the slow clients write from now on, and returns how many bytes they have written to the router.
func tell(slow *rig.Proc, where string) int {
	sent, _ := strconv.Atoi(string(wire.Once(slow.Addr, wire.Get(where)).Body))
	return sent
}

// slowClients are what slowProc starts.
type slowClients struct {
	to, aside string
	attack    atomic.Bool  // they write to the router, else aside
	sent      atomic.Int64 // bytes to the router
	dialed    atomic.Int64 // clients that have been connected once
}

// run serves /attack and /aside on listen.
func (s *slowClients) run(listen string, n int) error {
	sink, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s.aside = sink.Addr().String()
	var unread []net.Conn // held for as long as the process lives
	go func() {
		for {
			c, err := sink.Accept()
			if err != nil {
				return
			}
			unread = append(unread, c)
		}
	}()
	for i := range n {
		go s.client(i%20 == 0)
		if i%100 == 99 {
			time.Sleep(10 * time.Millisecond)
		}
	}
	for end := time.Now().Add(30 * time.Second); s.dialed.Load() < int64(n); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("%d of %d slow clients are connected after 30 s", s.dialed.Load(), n)
		}
	}
	w := wire.Worker{Handle: func(c *wire.Call) bool {
		switch c.Path {
		case "/attack":
			s.attack.Store(true)
		case "/aside":
			s.attack.Store(false)
		}
		return c.Plain(200, "text/plain", strconv.FormatInt(s.sent.Load(), 10))
	}}
	if err := w.Start(listen); err != nil {
		return err
	}
	select {} // until it is killed
}

// client sends a byte of a header, or of a body, every two seconds, to the router or aside. It comes back when the
// router turns it away.
func (s *slowClients) client(body bool) {
	c, err := s.begin(body)
	if err != nil {
		return
	}
	aside, err := net.Dial("tcp", s.aside)
	if err != nil {
		return
	}
	s.dialed.Add(1)
	time.Sleep(rand.N(2 * time.Second))
	for ; ; time.Sleep(2 * time.Second) {
		if !s.attack.Load() {
			aside.Write([]byte("x"))
			continue
		}
		s.sent.Add(1)
		if _, err := c.Write([]byte("x")); err != nil {
			c.Reset()
			c, err = s.begin(body)
			if err != nil {
				return
			}
		}
	}
}

// begin opens a connection and sends all but the end of a header, or the begin of a body.
func (s *slowClients) begin(body bool) (*wire.Conn, error) {
	c, err := net.DialTimeout("tcp", s.to, wire.Timeout)
	if err != nil {
		return nil, err
	}
	head := "POST " + chatPath + " HTTP/1.1\r\nHost: r\r\nContent-Type: application/json\r\n"
	if body {
		head += "Content-Length: 1000000\r\n\r\n{"
	}
	_, err = c.Write([]byte(head))
	return &wire.Conn{Conn: c, R: bufio.NewReaderSize(c, 16)}, err
}
