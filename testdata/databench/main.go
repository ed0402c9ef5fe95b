package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"

	"github.com/warmpath/warmpath/testdata/databench/proc"
)

func main() {
	bin := flag.String("bin", "bin/warmpath", "the daemon")
	quick := flag.Bool("quick", false, "fewer and shorter rounds")
	only := flag.String("run", "", "only the measures whose name fits this expression")
	role := flag.String("role", "", "worker | reverseproxy: what the program starts itself as")
	listen := flag.String("listen", "", "of a role")
	to := flag.String("to", "", "of reverseproxy: the worker")
	flag.Parse()
	var err error
	switch *role {
	case "worker":
		err = serveWorker(*listen)
	case "reverseproxy":
		err = serveReverseProxy(*listen, *to)
	default:
		err = measure(*bin, *only, *quick)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "databench:", err)
		os.Exit(1)
	}
}

// bench is one run.
type bench struct {
	ctx      context.Context
	dir, bin string
	quick    bool
	worker   *proc.Proc
	proxies  []*proc.Proc
	samples  map[[2]string][]float64 // by figure and proxy, one a round
}

// proxyNames are the contenders, in the order of the output.
var proxyNames = []string{"nginx", "haproxy", "warmpath", "reverseproxy"}

func measure(bin, only string, quick bool) error {
	want, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "databench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err = filepath.Abs(bin)
	if err != nil {
		return err
	}
	b := &bench{ctx: ctx, dir: dir, bin: bin, quick: quick, samples: map[[2]string][]float64{}}
	b.worker, err = b.startSelf("worker", "")
	if err != nil {
		return err
	}
	defer b.worker.Stop()
	for _, name := range proxyNames {
		p, err := b.start(name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "databench: no %s: %v\n", name, err)
			continue
		}
		defer p.Stop()
		b.proxies = append(b.proxies, p)
	}
	for _, m := range measures {
		if want.MatchString(m.name) {
			if err := b.rounds(m); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
	}
	complete := true
	out := json.NewEncoder(os.Stdout)
	for _, f := range b.figures(want) {
		complete = complete && !f.Missing
		if err := out.Encode(f); err != nil {
			return err
		}
	}
	if !complete {
		return fmt.Errorf("figures are missing; install nginx and haproxy, and look above")
	}
	return nil
}

// rounds lets the proxies take turns; each round begins with another.
func (b *bench) rounds(m measureOf) error {
	n := m.rounds
	if b.quick {
		n = min(n, 2)
	}
	for round := range n {
		if m.round != nil {
			if err := m.round(b); err != nil {
				return err
			}
		}
		for i := range b.proxies {
			p := b.proxies[(i+round)%len(b.proxies)]
			if err := b.ctx.Err(); err != nil {
				return err
			}
			err := m.proxy(b, p)
			switch {
			case err == nil:
			case p.Name == "warmpath":
				return fmt.Errorf("%w; its log ends %q", err, p.Log(300))
			default: // a peer's own trouble: ReverseProxy breaks a stream now and then
				fmt.Fprintf(os.Stderr, "databench: %s: %s: %v\n", m.name, p.Name, err)
			}
		}
	}
	return nil
}

func (b *bench) note(figure, proxy string, v float64) {
	key := [2]string{figure, proxy}
	b.samples[key] = append(b.samples[key], v)
}

// noteUnless notes what was measured without an error.
func (b *bench) noteUnless(err error, figure, proxy string, v float64) error {
	if err == nil {
		b.note(figure, proxy, v)
	}
	return err
}

// last is what was noted last.
func (b *bench) last(figure, proxy string) float64 {
	s := b.samples[[2]string{figure, proxy}]
	return s[len(s)-1]
}
