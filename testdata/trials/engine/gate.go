package engine

import (
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Gate is a relay in front of an engine whose socket accepts only while the gate is open. Its queue holds three
// connections. A kernel drops the SYN of whoever comes when it is full, as where a process is too busy to accept.
type Gate struct {
	Addr string

	listener net.Listener
	open     atomic.Bool
	mu       sync.Mutex // guards held
	held     []net.Conn // connections that fill the queue
}

// NewGate starts an open gate to an engine's address.
func NewGate(to string) (*Gate, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err == nil {
		err = syscall.Listen(fd, 2)
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "gate")
	listener, err := net.FileListener(file)
	_ = file.Close()
	if err != nil {
		return nil, err
	}
	g := &Gate{Addr: listener.Addr().String(), listener: listener}
	g.open.Store(true)
	go g.accept(to)
	return g, nil
}

func (g *Gate) accept(to string) {
	for {
		g.await()
		c, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.await() // it was shut while this waited
		go relay(c, to)
	}
}

// await returns when the gate is open.
func (g *Gate) await() {
	for !g.open.Load() {
		time.Sleep(5 * time.Millisecond)
	}
}

// Shut stops accepting and fills the queue.
func (g *Gate) Shut() {
	g.open.Store(false)
	for range 6 {
		c, err := net.DialTimeout("tcp", g.Addr, 50*time.Millisecond)
		if err != nil {
			return
		}
		g.mu.Lock()
		g.held = append(g.held, c)
		g.mu.Unlock()
	}
}

// Open accepts again.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.held {
		_ = c.Close()
	}
	g.held = nil
	g.open.Store(true)
}

// Close ends the gate. Connections that it has accepted go on.
func (g *Gate) Close() {
	g.Open()
	_ = g.listener.Close()
}

// relay copies both ways until either side ends.
func relay(c net.Conn, to string) {
	defer c.Close()
	up, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer up.Close()
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{c, up}, {up, c}} {
		go func() {
			pipe(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

func pipe(from, to net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if _, werr := to.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}
