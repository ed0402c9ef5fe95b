package main

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
	"unicode"

	"github.com/warmpath/warmpath/testdata/rig"
)

// topics are all of them, in the order of the output.
var topics = []topic{
	{"door", attackDoor},
	{"tls", attackSecure},
	{"keys", attackKeys},
	{"workers", attackWorkers},
	{"sessions", attackSessions},
	{"sandbox", attackSandbox},
	{"conf", attackConf},
	{"memory", attackMemory},
	{"ports", attackPorts},
}

// topic is a group of ways that share daemons.
type topic struct {
	name string
	run  func(*lab) error
}

// limit bounds a whole run of one round. It is far above what one takes, so that a hanging way is told instead of
// waited for.
const limit = 8 * time.Minute

func main() {
	bin := flag.String("bin", "", "the daemon; empty: build it from this checkout")
	only := flag.String("run", "", "only the topics and ways whose topic/name fits this expression")
	dir := flag.String("dir", "", "folder for configurations and logs, which stay there; default: a temporary one")
	flag.IntVar(&rounds, "rounds", rounds, "of the ways that measure another pool's p99")
	flag.Parse()
	rig.Main("attacks", *dir, func(ctx context.Context, dir string) (bool, error) {
		broken, err := run(ctx, dir, *bin, *only)
		return broken == 0, err
	})
}

// run replays the ways that fit and returns how many are broken.
func run(ctx context.Context, dir, bin, only string) (broken int, err error) {
	want, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, limit*time.Duration(max(rounds, 1)))
	defer cancel()
	bin, err = rig.Build(ctx, dir, bin)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	r := &report{want: want, tried: map[string]bool{}}
	for _, t := range topics {
		if err := ctx.Err(); err != nil {
			return r.broken, fmt.Errorf("stopped before %s: %w", t.name, err)
		}
		l := &lab{ctx: ctx, dir: dir, bin: bin, topic: t.name, report: r}
		l.attack(t)
		debug.FreeOSMemory() // of this process: the machine's memory is the daemon's to waste
	}
	if len(r.tried) == 0 {
		return 0, fmt.Errorf("no way fits %q", only)
	}
	fmt.Printf("%d ways in %s, %d broken\n", len(r.tried), time.Since(began).Round(time.Second), r.broken)
	return r.broken, nil
}

// report prints the lines.
type report struct {
	want   *regexp.Regexp
	tried  map[string]bool // names of ways
	broken int
}

func (r *report) line(ok bool, name, seen string) {
	word := "ok"
	if r.tried[name] {
		ok, seen = false, "BUG: two ways have this name; "+seen
	}
	if !ok {
		word = "BROKEN"
		r.broken++
	}
	r.tried[name] = true
	// One line of plain text, whatever a daemon has answered.
	seen = strings.Map(func(c rune) rune {
		if c < ' ' || c == unicode.ReplacementChar {
			return ' '
		}
		return c
	}, seen)
	fmt.Printf("%-7s %-28s %.500s\n", word, name, strings.Join(strings.Fields(seen), " "))
}
