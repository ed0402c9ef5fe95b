package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

const memory = 1 << 30 // of each server

// server is a process under measurement.
type server struct {
	name, addr string
	cmd        *exec.Cmd
	null       bool // it keeps nothing

	segment string // file of the memory that it shares
}

// servers are the processes of one run.
type servers struct{ ours, pod, redis, null *server }

func startAll(bin, dir string) (*servers, error) {
	all := &servers{}
	steps := []func() error{
		func() (err error) { all.ours, err = startRESP(bin, dir); return err },
		func() (err error) { all.pod, err = startPod(bin, dir); return err },
		func() (err error) { all.redis, err = startRedis(dir); return err },
		func() (err error) { all.null, err = startNull(); return err },
		func() error { return all.ours.fill() },
		func() error { return all.redis.fill() },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			all.stop()
			return nil, err
		}
	}
	return all, nil
}

func (s *servers) stop() {
	for _, one := range []*server{s.ours, s.pod, s.redis, s.null} {
		if one != nil {
			one.stop()
		}
	}
}

// stop ends a process as its user would: warmpath takes its segment along.
func (s *server) stop() {
	_ = s.cmd.Process.Signal(os.Interrupt)
	late := time.AfterFunc(10*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	_ = s.cmd.Wait()
}

// fill makes the arena as full as it is in use: each further value evicts one.
func (s *server) fill() error {
	c, err := newClient(s.addr, 0, 8<<20)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	if err := c.put(memory / len(c.value) * 5 / 4); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// start runs a process until its address answers.
func start(name, addr string, cmd *exec.Cmd) (*server, error) {
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s does not start: %w", name, err)
	}
	s := &server{name: name, addr: addr, cmd: cmd}
	for range 500 {
		if c, err := net.Dial("tcp", addr); err == nil {
			c.Close()
			return s, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("%s does not listen on %s", name, addr)
}

// startWarmpath runs the program with a door of the KV cache at addr. kv names the door.
func startWarmpath(bin, dir, addr, kv string) (*server, error) {
	file := filepath.Join(dir, addr+".toml")
	text := fmt.Sprintf("[server]\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nlog_level = 'error'\n"+
		"[kv_cache]\nmax_bytes = %d\n%s\n"+
		"[[pools]]\nstrategy = 'roundrobin'\nworkers = [{ url = 'http://127.0.0.1:1' }]\n", memory, kv)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return start("warmpath", addr, exec.Command(bin, "serve", "--config", file))
}

func startRESP(bin, dir string) (*server, error) {
	addr := rig.FreeAddr()
	return startWarmpath(bin, dir, addr, fmt.Sprintf("resp = '%s'", addr))
}

// startPod runs the one whose memory is shared: another process, as memory of a file has no huge pages.
func startPod(bin, dir string) (*server, error) {
	addr := rig.FreeAddr()
	name := fmt.Sprintf("kvbench-%d", os.Getpid())
	s, err := startWarmpath(bin, dir, addr, fmt.Sprintf("hyperpod = '%s'\nsegment = '%s'", addr, name))
	if err == nil {
		s.segment = filepath.Join("/dev/shm", name)
	}
	return s, err
}

// startRedis makes redis-server evict as a cache does. Its victims are the oldest of a sample, now and then one that
// was just put. It counts the buffers of its clients as well, 64 MiB each of those that put and get 32 MiB: without as
// much again it evicts what they have put a moment ago.
func startRedis(dir string) (*server, error) {
	addr := rig.FreeAddr()
	_, port, _ := net.SplitHostPort(addr)
	return start("redis-server", addr, exec.Command("redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", dir,
		"--save", "", "--maxmemory", fmt.Sprint(2*memory), "--maxmemory-policy", "allkeys-lru", "--maxmemory-samples", "10"))
}
