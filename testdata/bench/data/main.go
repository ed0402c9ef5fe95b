package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/warmpath/warmpath/testdata/rig"
)

func main() {
	bin := flag.String("bin", "bin/warmpath", "the daemon")
	beside := flag.String("beside", "", "another build of the daemon: measure both, and nothing else, taking turns")
	quick := flag.Bool("quick", false, "fewer and shorter rounds")
	only := flag.String("run", "", "only the measures whose name fits this expression; growth, telling: see these files")
	role := flag.String("role", "", "worker | reverseproxy | collector: what the program starts itself as")
	listen := flag.String("listen", "", "of a role")
	to := flag.String("to", "", "of reverseproxy: the worker")
	flag.Parse()
	rig.Main("databench", "", func(ctx context.Context, dir string) (bool, error) {
		switch *role {
		case "worker":
			return true, serveWorker(*listen)
		case "reverseproxy":
			return true, serveReverseProxy(*listen, *to)
		case "collector":
			return true, serveCollector(*listen)
		}
		b := &bench{ctx: ctx, dir: dir, bin: map[string]string{"warmpath": *bin, "beside": *beside}, quick: *quick,
			compare: *beside != "", samples: map[[2]string][]float64{}}
		return true, b.measure(*only)
	})
}

// bench is one run.
type bench struct {
	ctx      context.Context
	dir      string
	bin      map[string]string // the daemon's builds by proxy name
	quick    bool
	compare  bool // two builds, nothing else
	worker   *rig.Proc
	proxies  []*rig.Proc
	switches float64                 // voluntary context switches a unit of work, of the last perRequest
	samples  map[[2]string][]float64 // by figure and proxy, one a round
}

// names are the contenders, in the order of the output.
func (b *bench) names() []string {
	if b.compare {
		return []string{"warmpath", "beside"}
	}
	return []string{"nginx", "haproxy", "warmpath", "reverseproxy"}
}

func (b *bench) measure(only string) error {
	want, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	for name, path := range b.bin {
		b.bin[name], err = filepath.Abs(path)
		if err != nil {
			return err
		}
	}
	if part, is := strings.CutPrefix(only, "growth"); is {
		return b.printGrowth(strings.TrimPrefix(part, "/"))
	}
	if some, ok := wantedTellings(only); ok {
		return b.printTelling(some)
	}
	b.worker, err = b.startSelf("worker", "")
	if err != nil {
		return err
	}
	defer b.worker.Stop()
	for _, name := range b.names() {
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
	if b.compare {
		n *= comparedRounds
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

// comparedRounds is how often as many rounds two builds of the daemon take: their difference is a few per cent, and a
// round's noise on a shared machine is 20.
const comparedRounds = 6

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
