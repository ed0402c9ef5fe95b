package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

// loads are requests a second beside the 32 that the fleet can do.
var loads = []struct {
	name string
	rate float64
}{{"half", 16}, {"full", 30}}

// line is one sign at one load.
type line struct {
	Sign     string  `json:"sign"`
	Load     string  `json:"load"`
	Warmpath figure  `json:"warmpath"`
	Nginx    *figure `json:"nginx,omitempty"`
	Alone    *figure `json:"alone,omitempty"` // a single engine at an eighth of the load, without a router
	OK       bool    `json:"ok"`
	Trouble  string  `json:"trouble,omitempty"`
}

func main() {
	s := stage{}
	flag.StringVar(&s.bin, "bin", "bin/warmpath", "the daemon")
	seconds := flag.Int("seconds", 120, "of each sign")
	side := flag.Int("side", 4, "signs that are played at a time")
	want := flag.String("run", "", "only signs whose name fits this expression")
	flag.Parse()
	s.d = time.Duration(*seconds) * time.Second
	rig.Main("signs", "", func(ctx context.Context, dir string) (ok bool, err error) {
		s.dir = dir
		s.bin, err = filepath.Abs(s.bin)
		if err != nil {
			return false, err
		}
		broken, err := play(ctx, s, *side, *want)
		return broken == 0, err
	})
}

// stage is what all signs are played with.
type stage struct {
	dir, bin string
	d        time.Duration // of each sign
}

// play plays all signs that are wanted at all loads and returns how many were not right.
func play(ctx context.Context, s stage, side int, want string) (broken int, err error) {
	fits, err := regexp.Compile(want)
	if err != nil {
		return 0, err
	}
	var all sync.WaitGroup
	var mu sync.Mutex // guards broken and the output
	turns := make(chan struct{}, max(1, side))
	for i := range signs {
		for _, load := range loads {
			if !fits.MatchString(signs[i].name) {
				continue
			}
			all.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				if ctx.Err() != nil {
					return
				}
				l := s.beside(ctx, &signs[i], load.rate)
				l.Load = load.name
				text, _ := json.Marshal(l)
				mu.Lock()
				defer mu.Unlock()
				fmt.Println(string(text))
				if !l.OK {
					broken++
				}
			})
		}
	}
	all.Wait()
	return broken, ctx.Err()
}

// beside plays a sign behind warmpath, and at the same time behind nginx at a fleet of its own and at one engine alone.
func (s stage) beside(ctx context.Context, a *sign, rate float64) line {
	l := line{Sign: a.name}
	var others sync.WaitGroup
	if _, err := exec.LookPath("nginx"); err == nil {
		others.Go(func() {
			f, err := behind(ctx, a, rate, s.d, func(doors []string) (*rig.Proc, error) { return rig.Nginx(s.dir, doors...) })
			if err == nil {
				l.Nginx = &f
			}
		})
	}
	others.Go(func() {
		f, err := alone(ctx, a, rate/engines, s.d)
		if err == nil {
			l.Alone = &f
		}
	})
	var err error
	l.Warmpath, err = behind(ctx, a, rate, s.d, func(doors []string) (*rig.Proc, error) {
		return rig.Router{Workers: doors}.Start(s.dir, s.bin)
	})
	others.Wait()
	if err != nil {
		l.Trouble = err.Error()
	}
	l.OK = err == nil && l.Warmpath.Sent > 0 && l.Warmpath.bad() <= l.Warmpath.Explained
	return l
}
