package rig

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// Proc is a running process that listens.
type Proc struct {
	Name  string
	Addr  string // host:port for clients
	Admin string // host:port of /metrics; warmpath's only
	Conf  string // path of its configuration
	cmd   *exec.Cmd
	log   *os.File
	done  chan struct{}
}

// Start runs a command in dir until Stop. What it prints goes to NAME-*.log in dir.
func Start(dir, name, addr string, command ...string) (*Proc, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	return StartCmd(dir, name, addr, cmd)
}

// StartCmd is Start of a command with its own environment, folder or process group.
func StartCmd(dir, name, addr string, cmd *exec.Cmd) (*Proc, error) {
	log, err := os.CreateTemp(dir, name+"-*.log")
	if err != nil {
		return nil, err
	}
	p := &Proc{Name: name, Addr: addr, cmd: cmd, log: log, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = log, log
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = dieWithParent()
	}
	if err := cmd.Start(); err != nil {
		log.Close()
		return nil, fmt.Errorf("rig: %s: %w", name, err)
	}
	go func() {
		_ = cmd.Wait() // its result is in ProcessState
		close(p.done)
	}()
	return p, nil
}

// Await waits until GET path is answered with 200.
func (p *Proc) Await(path string) error { return p.awaitAt(p.Addr, path) }

func (p *Proc) awaitAt(addr, path string) error {
	var a wire.Answer
	if !p.within(time.Minute, func() bool {
		a = wire.GetFrom(addr, path)
		return a.Err == nil && a.Status == 200
	}) {
		return fmt.Errorf("rig: %s does not answer %s with 200 (%d, %v); its log ends %s", p.Name, path, a.Status, a.Err,
			p.Log(600))
	}
	return nil
}

// AwaitPort waits until Addr accepts a connection.
func (p *Proc) AwaitPort() error {
	if !p.within(time.Minute, func() bool {
		c, err := net.Dial("tcp", p.Addr)
		if err == nil {
			c.Close()
		}
		return err == nil
	}) {
		return fmt.Errorf("rig: %s does not listen on %s; its log ends %s", p.Name, p.Addr, p.Log(600))
	}
	return nil
}

// within waits until f is true, d at most and not beyond the process's end.
func (p *Proc) within(d time.Duration, f func() bool) (ok bool) {
	Eventually(d, func() bool {
		ok = f()
		return ok || p.Exited()
	})
	return ok
}

// Eventually waits until f is true, d at most.
func Eventually(d time.Duration, f func() bool) bool {
	for end := time.Now().Add(d); ; time.Sleep(20 * time.Millisecond) {
		if f() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
	}
}

// Log returns the last n bytes of what it printed.
func (p *Proc) Log(n int) string {
	b, _ := os.ReadFile(p.log.Name())
	return string(b[max(0, len(b)-n):])
}

// URL is where clients reach it.
func (p *Proc) URL() string { return "http://" + p.Addr }

// Logged tells whether text stands in what it printed.
func (p *Proc) Logged(text string) bool {
	b, _ := os.ReadFile(p.log.Name())
	return bytes.Contains(b, []byte(text))
}

// Exited tells whether the process has ended.
func (p *Proc) Exited() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// Signal sends a signal.
func (p *Proc) Signal(s syscall.Signal) { p.cmd.Process.Signal(s) }

// WaitExit waits for the process to end and returns its exit status; false if it still runs after d.
func (p *Proc) WaitExit(d time.Duration) (int, bool) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode(), true
	case <-time.After(d):
		return 0, false
	}
}

// End asks the process to end, kills it if it has not ended after d, and waits for its end.
func (p *Proc) End(d time.Duration) {
	if p == nil {
		return
	}
	p.Signal(syscall.SIGTERM)
	p.WaitExit(d)
	p.Stop()
}

// Stop kills the process if it runs, and waits for its end.
func (p *Proc) Stop() {
	if p == nil {
		return
	}
	p.cmd.Process.Kill()
	<-p.done
	p.log.Close()
}

// FreeAddr is a loopback address that nobody listens on, below the ports that the kernel gives out by itself.
func FreeAddr() string {
	for {
		addr := fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(20000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
}

// write puts a configuration into a new file of dir.
func write(dir, name, text string) (string, error) {
	path := filepath.Join(dir, strings.ReplaceAll(FreeAddr(), ":", "-")+"-"+name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}
