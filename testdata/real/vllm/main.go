package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
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

// check is one of those that are played to two workers behind a router.
type check struct {
	name string
	run  func(context.Context, *scene) (figure string, err error)
	ends bool // a worker
}

// checks run in this order. Each but those that end a worker leaves both up; the one after those starts it again.
var checks = []check{
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
	flag.StringVar(&o.record, "record", "", "check nothing; write to this folder what a worker sends that is stopped,\n"+
		"or with -check caches one that evicts")
	flag.StringVar(&o.check, "check", "requests", "what: requests | caches | training | leaving | tier |\n"+
		"pairs | simulated")
	flag.StringVar(&o.attach, "attach", "", "two workers of caches that run already: ID=URL,EVENTS,REPLAY with a space\n"+
		"between")
	flag.StringVar(&o.parts, "parts", "both", "of caches: believed | situations | both")
	connectors := flag.String("connectors", "nixl,lmcache,folder", "that pairs tries")
	strategies := flag.String("strategies", "prefixaware,kvaware", "that caches compares")
	flag.IntVar(&o.requests, "requests", 200, "of each run of caches")
	flag.DurationVar(&o.budget, "budget", 2*time.Second,
		"of the router to learn a prompt's ids, in caches; engines on busy cores answer late")
	flag.Uint64Var(&o.seed, "seed", 1, "of the traffic of caches")
	flag.IntVar(&o.seeds, "seeds", 1, "so many, from -seed on, of the situations of caches and of simulated")
	flag.Parse()
	o.strategies, o.connectors = strings.Split(*strategies, ","), strings.Split(*connectors, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		stop()
		fmt.Fprintln(os.Stderr, "realvllm:", err)
		os.Exit(1)
	}
}

type options struct {
	python, model, binary, record string
	check, attach, parts          string
	strategies, connectors        []string
	requests                      int
	seed                          uint64
	seeds                         int
	budget                        time.Duration
}

// run leaves no process behind, however it ends.
func run(ctx context.Context, o options) (err error) {
	o.seeds = max(1, o.seeds)
	if o.check == "simulated" {
		return checkSimulated(ctx, o)
	}
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
	switch o.check {
	case "caches":
		return checkCaches(ctx, o, dir)
	case "pairs":
		return checkPairs(ctx, o, dir)
	case "training":
		return checkTraining(ctx, o, dir)
	case "leaving":
		return checkLeaving(ctx, o, dir)
	case "tier":
		return checkTier(ctx, o, dir)
	}
	ports, err := freePorts(4)
	if err != nil {
		return err
	}
	s := &scene{setup: setup{python: o.python, model: o.model, dir: dir, drain: 20 * time.Second, blocks: 1024,
		length: 8192}, ports: ports}
	defer s.close()
	if o.record != "" {
		return record(ctx, s, o.record)
	}
	if err := s.open(ctx, o.binary); err != nil {
		return err
	}
	return s.play(ctx, checks)
}

// play plays checks, and prints a line for each.
func (s *scene) play(ctx context.Context, checks []check) error {
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
	if err := s.route(ctx, binary, ""); err != nil {
		return err
	}
	fmt.Printf("ok    %-15s two workers serve after %.0f s\n", "start", time.Since(began).Seconds())
	return nil
}

// route starts the router, in place of the one that runs, with these lines in its pool, and waits until it has both
// workers.
func (s *scene) route(ctx context.Context, binary, pool string) (err error) {
	if s.router != nil {
		s.router.kill()
	}
	s.router, err = serve(binary, s.setup.dir, settings{name: "warmpath", port: s.ports[2], admin: s.ports[3],
		workers: s.workers[:], pool: pool})
	if err != nil {
		return err
	}
	return s.up(ctx)
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
func (s *scene) up(ctx context.Context) error { return s.router.up(ctx, s.workers[:]) }

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
