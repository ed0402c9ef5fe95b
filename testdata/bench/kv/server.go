package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

const memory = 1 << 30 // of each server

// server is a process under measurement.
type server struct {
	*rig.Proc
	null    bool   // it keeps nothing
	segment string // file of the memory that it shares
}

// patience is how long a server may take to end: warmpath deletes its segment.
const patience = 10 * time.Second

// servers are the processes of one run.
type servers struct{ ours, pod, redis, null *server }

func startAll(bin, dir string) (*servers, error) {
	all := &servers{}
	steps := []func() error{
		func() (err error) { all.ours, err = startRESP(bin, dir); return err },
		func() (err error) { all.pod, err = startPod(bin, dir); return err },
		func() (err error) { all.redis, err = startRedis(dir); return err },
		func() (err error) { all.null, err = startNull(dir); return err },
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
			one.End(patience)
		}
	}
}

// fill makes the arena as full as it is in use: each further value evicts one.
func (s *server) fill() error {
	c, err := newClient(s.Addr, 0, 8<<20)
	if err != nil {
		return err
	}
	defer c.conn.Close()
	if err := c.put(memory / len(c.value) * 5 / 4); err != nil {
		return fmt.Errorf("%s: %w", s.Name, err)
	}
	return nil
}

// served is the server of a process that was started.
func served(p *rig.Proc, err error) (*server, error) {
	if err != nil {
		return nil, err
	}
	return &server{Proc: p}, nil
}

// startWarmpath runs the program with a door of the KV cache at addr. kv names the door.
func startWarmpath(bin, dir, addr, kv string) (*server, error) {
	text := fmt.Sprintf("[server]\nlisten = '127.0.0.1:0'\nadmin = '127.0.0.1:0'\nlog_level = 'error'\n"+
		"[kv_cache]\nmax_bytes = %d\n%s\n"+
		"[[pools]]\nstrategy = 'roundrobin'\nworkers = [{ url = 'http://127.0.0.1:1' }]\n", memory, kv)
	return served(rig.Serve(dir, bin, addr, text))
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
	return served(rig.Redis(dir, rig.FreeAddr(), "--maxmemory", fmt.Sprint(2*memory), "--maxmemory-policy", "allkeys-lru",
		"--maxmemory-samples", "10"))
}
