package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"time"
)

// checkTier drains a worker whose KV goes through an LMCache server of its own to the router's tier. The other worker,
// with another server, must find it there.
func checkTier(ctx context.Context, o options, dir string) error {
	ports, err := freePorts(7)
	if err != nil {
		return err
	}
	s := &scene{setup: setup{python: o.python, model: o.model, dir: dir, blocks: 1024, length: 8192}, ports: ports}
	defer s.close()
	for i := range s.workers { // the router comes first: the servers connect at their start, and not again
		s.workers[i] = &vllm{id: fmt.Sprintf("w%d", i+1), url: fmt.Sprint("http://127.0.0.1:", ports[i])}
	}
	s.router, err = serve(o.binary, dir, settings{name: "warmpath", port: ports[2], admin: ports[3],
		workers: s.workers[:], more: fmt.Sprintf("\n[kv_cache]\nresp = \"127.0.0.1:%d\"\nmax_bytes = 268435456\n", ports[4])})
	s.workers = [2]*vllm{}
	if err != nil {
		return err
	}
	if err := listens(ctx, ports[4]); err != nil {
		return err
	}
	var servers []*exec.Cmd
	defer func() {
		for _, c := range servers {
			killGroup(c)
		}
	}()
	began := time.Now()
	for i := range s.workers {
		id := fmt.Sprintf("w%d", i+1)
		server, err := s.setup.serveCache(ctx, "lmcache-"+id, ports[5+i], "--instance-id", id, "--l2-adapter",
			fmt.Sprintf(`{"type":"resp","host":"127.0.0.1","port":%d,"num_workers":2}`, ports[4]))
		servers = append(servers, server)
		if err != nil {
			return err
		}
		s.workers[i], err = s.setup.throughCache(ports[5+i]).start(id, ports[i])
		if err != nil {
			return err
		}
	}
	for _, w := range s.workers {
		if _, err := w.ready(ctx); err != nil {
			return err
		}
		if err := w.warm(ctx); err != nil {
			return err
		}
	}
	if err := s.up(ctx); err != nil {
		return err
	}
	fmt.Printf("ok    %-15s two workers and two LMCache servers serve after %.0f s\n", "start",
		time.Since(began).Seconds())
	return s.play(ctx, []check{{"tier", func(ctx context.Context, s *scene) (string, error) {
		return s.drained(ctx, o.binary, byTier)
	}, false}})
}

// listens waits until a port of the router takes connections.
func listens(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", port))
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d of the router: %w", port, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// stored waits until no more values come to the router's tier, and returns how many have come.
func (s *scene) stored(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for last := -1; ; {
		a := s.router.admin.send(ctx, "GET", "/api/v1/cache", nil, nil)
		n := a.number("puts")
		if n > 0 && n == last {
			return n, nil
		}
		last = n
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("values come to the tier without an end, or none does: %d, %.300s", n, a.body)
		case <-time.After(2 * time.Second):
		}
	}
}
