package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// figure is one line of the output.
type figure struct {
	Name     string  `json:"name"`
	Warmpath float64 `json:"warmpath_GBps"` // the middle of the rounds
	Other    float64 `json:"other_GBps"`    // redis-server; a plain copy, for shared memory
	Limit    float64 `json:"limit_GBps,omitempty"`
	Ratio    float64 `json:"ratio"`                    // to the other: the middle of the rounds' own ratios
	Share    float64 `json:"share,omitzero"`           // of the limit, likewise
	Least    float64 `json:"least"`                    // that is asked of the ratio
	CPU      float64 `json:"warmpath_cpu_us,omitzero"` // of the server for a value
	OtherCPU float64 `json:"other_cpu_us,omitzero"`
	OK       bool    `json:"ok"`
	Note     string  `json:"note,omitempty"`
}

// clientBound is the share of the limit from which on the client, and not the server, decides how fast it goes.
const clientBound = 0.9

// options are the flags.
type options struct {
	bin     string
	rounds  int
	budget  int64
	clients []int
	sizes   []int
	stopped time.Duration
}

func main() {
	o := options{clients: []int{1, 8}, sizes: []int{1 << 10, 1 << 20, 4 << 20, 16 << 20, 32 << 20}}
	flag.StringVar(&o.bin, "bin", "bin/warmpath", "the program to measure")
	flag.IntVar(&o.rounds, "rounds", 5, "turns that each server gets at each figure, after one that does not count")
	flag.Int64Var(&o.budget, "bytes", 256<<20, "of values that a turn puts and gets, at most 20,000 values")
	flag.Func("clients", "how many, separated by commas (default 1,8)", numbers(&o.clients))
	flag.Func("sizes", "of values, in bytes, separated by commas", numbers(&o.sizes))
	l2 := flag.Bool("l2", false, "measure the tiers behind the KV cache, not its doors")
	stall := flag.Bool("stall", false, "measure what waits while the L2 is stopped, flushed and killed")
	flag.DurationVar(&o.stopped, "stopped", 30*time.Second, "how long -stall stops it")
	null := flag.String("null", "", "be the server that the limit is measured with, at this address")
	flag.Parse()
	rig.Main("kvbench", "", func(ctx context.Context, dir string) (ok bool, err error) {
		o.bin, err = filepath.Abs(o.bin)
		switch {
		case err != nil:
		case *null != "":
			err = serveNull(*null)
		case *stall:
			err = runStall(o)
		case *l2:
			err = runL2(o, dir)
		default:
			err = run(ctx, o, dir)
		}
		return true, err
	})
}

func numbers(into *[]int) func(string) error {
	return func(text string) error {
		*into = nil
		for _, word := range strings.Split(text, ",") {
			n, err := strconv.Atoi(word)
			if err != nil || n <= 0 {
				return fmt.Errorf("%q is no number above 0", word)
			}
			*into = append(*into, n)
		}
		return nil
	}
}

func run(ctx context.Context, o options, dir string) error {
	all, err := startAll(o.bin, dir)
	if err != nil {
		return err
	}
	defer all.stop()
	context.AfterFunc(ctx, all.stop) // then the clients' requests fail
	out := json.NewEncoder(os.Stdout)
	for _, clients := range o.clients {
		for _, size := range o.sizes {
			set, get, err := compare(all, turn{clients: clients, size: size, budget: o.budget}, o.rounds)
			if err != nil {
				return err
			}
			figures := []figure{set, get}
			if size >= 1<<20 { // a lease costs more than to copy less
				f, err := compareShared(all, turn{clients: clients, size: size, budget: o.budget}, o.rounds)
				if err != nil {
					return err
				}
				figures = append(figures, f)
			}
			for _, f := range figures {
				if err := out.Encode(f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// compare gives the servers their turns, each round beginning with another one. The first round warms them up.
func compare(all *servers, t turn, rounds int) (set, get figure, err error) {
	list := []*server{all.ours, all.redis, all.null}
	var sets, gets [3][]rate
	for round := range rounds + 1 {
		for k := range list {
			i := (k + round) % len(list)
			putRate, getRate, err := t.run(list[i])
			if err != nil {
				return set, get, fmt.Errorf("%s: %w", list[i].Name, err)
			}
			if round > 0 {
				sets[i] = append(sets[i], putRate)
				gets[i] = append(gets[i], getRate)
			}
		}
	}
	return newFigure("SET", t, sets, leastOf(t.size, 1.3)), newFigure("GET", t, gets, leastOf(t.size, 1.5)), nil
}

// leastOf returns the mark of the ratio: asked at LMCache's sizes, and never less than redis-server's speed elsewhere.
func leastOf(size int, asked float64) float64 {
	if size >= 1<<20 && size <= 16<<20 {
		return asked
	}
	return 1
}

// newFigure makes a figure of the rates of warmpath, of redis-server, and of the null server.
func newFigure(verb string, t turn, rates [3][]rate, least float64) figure {
	ours, redis, null := speeds(rates[0]), speeds(rates[1]), speeds(rates[2])
	f := figure{Name: t.name(verb), Least: least, Ratio: middle(quotients(ours, redis)),
		Share: middle(quotients(ours, null)), Warmpath: middle(ours), Other: middle(redis), Limit: middle(null),
		CPU: middle(cpus(rates[0])), OtherCPU: middle(cpus(rates[1]))}
	f.OK = f.Ratio >= least
	if f.Ratio >= 1 && f.Ratio < least && f.Share >= clientBound {
		f.OK, f.Note = true, "the client is the limit"
	}
	return f
}

func speeds(rates []rate) (list []float64) {
	for _, r := range rates {
		list = append(list, r.speed)
	}
	return list
}

func cpus(rates []rate) (list []float64) {
	for _, r := range rates {
		list = append(list, r.cpu)
	}
	return list
}

func quotients(a, b []float64) []float64 {
	q := make([]float64, len(a))
	for i := range a {
		q[i] = a[i] / b[i]
	}
	return q
}

func middle(list []float64) float64 {
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

func (t turn) name(verb string) string {
	size := fmt.Sprintf("%d KiB", t.size>>10)
	if t.size >= 1<<20 {
		size = fmt.Sprintf("%d MiB", t.size>>20)
	}
	return fmt.Sprintf("%s of %s, %d clients", verb, size, t.clients)
}
