package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// scene is what the checks play in.
type scene struct {
	setup   setup
	ports   []int
	workers [2]*vllm
	router  *router
}

// checks run in this order. Each but those that end a worker leaves both up; the one after those starts it again.
var checks = []struct {
	name string
	run  func(context.Context, *scene) (figure string, err error)
	ends bool // a worker
}{
	{"chat", checkChat, false},
	{"chat, streamed", checkChatStreamed, false},
	{"endpoints", checkEndpoints, false},
	{"responses", checkResponses, false},
	{"sessions", checkSessions, false},
	{"client leaves", checkLeave, false},
	{"drain", checkDrain, true},
	{"drained, back", checkDrainReturn, false},
	{"kill", checkKill, true},
	{"killed, back", checkKillReturn, false},
}

func main() {
	var o options
	flag.StringVar(&o.python, "python", "", "the Python that has vLLM")
	flag.StringVar(&o.model, "model", "", "folder of the model, from tiny_model.py")
	flag.StringVar(&o.binary, "warmpath", "bin/warmpath", "the router")
	flag.StringVar(&o.record, "record", "", "check nothing; write to this folder what a worker that is stopped sends")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "realvllm:", err)
		os.Exit(1)
	}
}

type options struct{ python, model, binary, record string }

// run leaves no process behind, however it ends.
func run(ctx context.Context, o options) (err error) {
	dir, err := os.MkdirTemp("", "realvllm")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil {
			os.RemoveAll(dir)
		} else {
			fmt.Println("logs are in", dir)
		}
	}()
	ports, err := freePorts(4)
	if err != nil {
		return err
	}
	s := &scene{setup: setup{python: o.python, model: o.model, dir: dir, drain: 20 * time.Second}, ports: ports}
	defer s.close()
	if o.record != "" {
		return record(ctx, s, o.record)
	}
	if err := s.open(ctx, o.binary); err != nil {
		return err
	}
	failed := 0
	for _, c := range checks {
		figure, err := c.run(ctx, s)
		if err != nil {
			failed++
			fmt.Printf("FAIL  %-15s %v\n", c.name, err)
		} else {
			fmt.Printf("ok    %-15s %s\n", c.name, figure)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.ends {
			continue
		}
		if err := s.up(ctx); err != nil {
			return fmt.Errorf("after %q: %w", c.name, err)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(checks))
	}
	return nil
}

// open starts both workers side by side, then the router, and waits until it has both.
func (s *scene) open(ctx context.Context, binary string) error {
	began := time.Now()
	for i := range s.workers {
		if err := s.start(i); err != nil {
			return err
		}
	}
	for _, w := range s.workers {
		if _, err := w.ready(ctx); err != nil {
			return err
		}
	}
	var err error
	s.router, err = serve(binary, s.setup.dir, s.ports[2], s.ports[3], s.workers[:])
	if err != nil {
		return err
	}
	if err := s.up(ctx); err != nil {
		return err
	}
	fmt.Printf("ok    %-15s two workers serve after %.0f s\n", "start", time.Since(began).Seconds())
	return nil
}

// start starts worker i, or starts it again; nothing of the old one is left.
func (s *scene) start(i int) error {
	if w := s.workers[i]; w != nil {
		w.kill()
	}
	w, err := s.setup.start(fmt.Sprintf("w%d", i+1), s.ports[i])
	if err == nil {
		s.workers[i] = w
	}
	return err
}

// up waits until the router has both workers.
func (s *scene) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, w := range s.workers {
		if _, _, err := s.router.waitState(ctx, w.id, "up", false); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) close() {
	for _, w := range s.workers {
		if w != nil {
			w.kill()
		}
	}
	if s.router != nil {
		s.router.kill()
	}
}

// running is the sum over both engines.
func (s *scene) running(ctx context.Context) (sum float64, err error) {
	for _, w := range s.workers {
		n, werr := w.running(ctx)
		sum += n
		err = errors.Join(err, werr)
	}
	return sum, err
}
