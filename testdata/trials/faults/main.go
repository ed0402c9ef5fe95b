package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

func main() {
	bin := flag.String("bin", "bin/warmpath", "the daemon")
	quick := flag.Bool("quick", false, "smaller numbers")
	only := flag.String("run", "", "only the checks whose name fits this expression")
	dir := flag.String("dir", "", "folder for configurations and logs, which stay there; default: a temporary one")
	soak := flag.Duration("soak", 0, "no checks; load and random faults for so long")
	role := flag.String("role", "", "worker | relay | slow: what the program starts itself as")
	listen := flag.String("listen", "", "of a role")
	to := flag.String("to", "", "of a relay: the worker; of slow clients: the router")
	n := flag.Int("n", 0, "of slow clients: how many")
	flag.Parse()
	if *role == "worker" {
		w := wire.Worker{Handle: (*wire.Call).Answer}
		if err := w.Start(*listen); err != nil {
			fmt.Fprintln(os.Stderr, "faults:", err)
			os.Exit(1)
		}
		select {} // until it is killed
	}
	if *role == "relay" {
		fmt.Fprintln(os.Stderr, "faults:", relay(*listen, *to))
		os.Exit(1)
	}
	if *role == "slow" {
		s := slowClients{to: *to}
		fmt.Fprintln(os.Stderr, "faults:", s.run(*listen, *n))
		os.Exit(1)
	}
	rig.Main("faults", *dir, func(ctx context.Context, dir string) (bool, error) {
		return runAll(ctx, dir, *bin, *only, *quick, *soak)
	})
}

// check is one fault and its mark.
type check struct {
	name string // for -run
	what string // the fault, as printed
	pass string
	run  func(*lab) (verdict, error)
	calm bool // it waits more than it works: others run beside it
}

// verdict is the result of a check.
type verdict struct {
	figure string
	ok     bool
}

func say(ok bool, format string, a ...any) (verdict, error) {
	return verdict{fmt.Sprintf(format, a...), ok}, nil
}

// line is one line of the output.
type line struct {
	Fault  string `json:"fault"`
	Peer   string `json:"peer,omitempty"`
	Figure string `json:"figure"`
	Pass   string `json:"pass,omitempty"`
	OK     *bool  `json:"ok,omitempty"` // not of a peer
	Took   string `json:"took,omitempty"`
}

// report writes lines and remembers whether a check failed.
type report struct {
	mu     sync.Mutex // guards all below
	out    *json.Encoder
	failed bool
}

func (r *report) print(l line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = r.failed || l.OK != nil && !*l.OK
	r.out.Encode(l)
}

func runAll(ctx context.Context, dir, bin, only string, quick bool, soak time.Duration) (ok bool, err error) {
	want, err := regexp.Compile(only)
	if err != nil {
		return false, err
	}
	bin, err = filepath.Abs(bin)
	if err != nil {
		return false, err
	}
	todo := checks
	if soak > 0 {
		todo = []check{soakCheck(soak)}
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false) // "<=" is to be read
	r := &report{out: out}
	var beside sync.WaitGroup
	for _, c := range todo {
		if !want.MatchString(c.name) && soak == 0 {
			continue
		}
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		l := &lab{ctx: ctx, dir: dir, bin: bin, quick: quick, report: r, what: c.name + ": " + c.what}
		if c.calm {
			beside.Go(func() { judge(l, c, r, &beside) })
			continue
		}
		judge(l, c, r, &beside)
	}
	beside.Wait()
	return !r.failed, nil
}

// judge runs a check. The way back to the baseline takes the idle times of connections and goroutines: judge waits for
// it beside the next check.
func judge(l *lab, c check, r *report, beside *sync.WaitGroup) {
	began := time.Now()
	v, err := c.run(l)
	took := time.Since(began).Round(100 * time.Millisecond)
	if err != nil {
		v.figure, v.ok = v.figure+" could not be tried: "+err.Error(), false
	}
	beside.Go(func() {
		if trouble := l.settle(); trouble != "" {
			v.figure, v.ok = v.figure+"; "+trouble, false
		}
		if !v.ok {
			for _, router := range l.routers {
				fmt.Fprintf(os.Stderr, "faults: %s: the router's log ends %s\n", c.name, router.Log(4000))
			}
		}
		l.close()
		r.print(line{Fault: l.what, Figure: v.figure, Pass: c.pass, OK: &v.ok, Took: took.String()})
	})
}
