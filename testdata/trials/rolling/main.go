package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/testdata/rig"
	"github.com/warmpath/warmpath/testdata/rig/wire"
)

// When what happens, from the beginning of the load.
const (
	workers  = 8
	filled   = 30 * time.Second // the caches are
	first    = 90 * time.Second // worker is drained
	each     = 16 * time.Second // further one
	within   = 13 * time.Second // of a hand-over
	over     = first + workers*each
	slowness = "5" // of the workers, as the simulator counts it
)

// The marks of a hand-over.
const (
	mostGrowth = 1.1
	mostLost   = .02
	mostUnused = .2
)

// line is what the clients of one fleet saw.
type line struct {
	Mode   string  `json:"mode"` // still: no worker is replaced; drain; hand-over
	Before side    `json:"before"`
	During side    `json:"during"`
	Grows  float64 `json:"p90_grows"` // to this multiple of before
	Moved  float64 `json:"moved_tokens"`
	Unused float64 `json:"unused_share"` // of them
	Failed int     `json:"failed"`       // requests
}

// ok reports whether no request failed, and whether a hand-over keeps its marks beside a fleet that is left alone.
func (l *line) ok(still *line) bool {
	marks := l.Grows <= mostGrowth*max(1, still.Grows) && l.During.Hits >= l.Before.Hits-mostLost &&
		l.Moved > 0 && l.Unused <= mostUnused
	return l.Failed == 0 && l.Before.Requests > 0 && l.During.Requests > 0 && (l.Mode != "hand-over" || marks)
}

func main() {
	bin := flag.String("bin", "bin/warmpath", "the daemon")
	dir := flag.String("dir", "", "folder for logs, which stay there; default: a temporary one")
	seed := flag.Uint64("seed", 1, "of the load")
	flag.Parse()
	rig.Main("rolling", *dir, func(ctx context.Context, dir string) (ok bool, err error) {
		path, err := filepath.Abs(*bin)
		if err != nil {
			return false, err
		}
		modes := []string{"still", "drain", "hand-over"}
		lines, errs := make([]*line, len(modes)), make([]error, len(modes))
		var all sync.WaitGroup
		for i, mode := range modes {
			all.Go(func() { lines[i], errs[i] = play(ctx, filepath.Join(dir, mode), path, mode, *seed) })
		}
		all.Wait()
		ok = true
		for i, l := range lines {
			if errs[i] != nil {
				return false, fmt.Errorf("%s: %w", modes[i], errs[i])
			}
			if err := json.NewEncoder(os.Stdout).Encode(l); err != nil {
				return false, err
			}
			ok = ok && l.ok(lines[0])
		}
		return ok, nil
	})
}

// fleet is a router and its workers, each a process.
type fleet struct {
	dir, bin string
	router   *rig.Proc
	workers  []*rig.Proc
}

// play plays the load to a fleet of its own.
func play(ctx context.Context, dir, bin, mode string, seed uint64) (*line, error) {
	sc, err := setup.Read("rolling")
	if err != nil {
		return nil, err
	}
	load, err := sc.Load(seed)
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	f := &fleet{dir: dir, bin: bin}
	defer f.close()
	if err := f.start(); err != nil {
		return nil, err
	}
	cl := &clients{url: f.router.URL(), began: time.Now(), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 256}}}
	var all sync.WaitGroup
	if mode != "still" {
		all.Go(func() { err = f.replace(ctx, cl.began, mode == "hand-over") })
	}
	for i := range load.Chats {
		all.Go(func() { cl.play(ctx, &load.Chats[i]) })
	}
	all.Wait()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	l := &line{Mode: mode, Before: cl.side(filled, first), During: cl.side(first, over), Failed: cl.failed}
	l.Grows = l.During.P90 / max(.001, l.Before.P90)
	l.Moved, l.Unused = moves(f.router.Admin)
	return l, nil
}

// start starts the workers and the router.
func (f *fleet) start() error {
	for range workers {
		w, err := f.worker(rig.FreeAddr())
		if err != nil {
			return err
		}
		f.workers = append(f.workers, w)
	}
	var addrs []string
	for _, w := range f.workers {
		if err := w.Await("/health"); err != nil {
			return err
		}
		addrs = append(addrs, w.Addr)
	}
	var err error
	f.router, err = rig.Router{Pool: "name = \"p\"\nhand_over_bytes = 268435456\n", Workers: addrs}.Start(f.dir, f.bin)
	return err
}

// worker starts one.
func (f *fleet) worker(addr string) (*rig.Proc, error) {
	return rig.Start(f.dir, "worker", addr, f.bin, "sim", "--listen", addr, "--model", model, "--slowness", slowness)
}

func (f *fleet) close() {
	f.router.Stop()
	for _, w := range f.workers {
		w.Stop()
	}
}

// replace replaces the workers one after the other.
func (f *fleet) replace(ctx context.Context, began time.Time, handOver bool) error {
	for i, w := range f.workers {
		if !await(ctx, began.Add(first+time.Duration(i)*each)) {
			return ctx.Err()
		}
		id, drain := fmt.Sprint("w", i), []string{"drain"}
		if handOver {
			drain = append(drain, "--hand-over", "--within", within.String())
		}
		if err := f.command(ctx, append(drain, id)...); err != nil {
			return err
		}
		if handOver && !await(ctx, time.Now().Add(within)) {
			return ctx.Err()
		}
		if err := f.command(ctx, "drain", "--wait", "30s", id); err != nil {
			return err
		}
		w.Stop()
		again, err := f.worker(w.Addr)
		if err != nil {
			return err
		}
		f.workers[i] = again
		if err := again.Await("/health"); err != nil {
			return err
		}
		if err := f.command(ctx, "undrain", id); err != nil {
			return err
		}
	}
	return nil
}

// command runs a command of an operator.
func (f *fleet) command(ctx context.Context, args ...string) error {
	out, err := exec.CommandContext(ctx, f.bin, append(args, "--admin", f.router.Admin)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("warmpath %v: %w: %s", args, err, out)
	}
	return nil
}

// await waits until an instant, and returns false if ctx ends first.
func await(ctx context.Context, at time.Time) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(time.Until(at)):
		return true
	}
}

// moves returns how many tokens have moved, and the share of them that no next turn used.
func moves(admin string) (moved, unused float64) {
	page := string(wire.GetFrom(admin, "/metrics").Body)
	moved = metric(page, `warmpath_conversation_move_tokens_total{pool="p",result="moved"}`)
	if moved > 0 {
		unused = 1 - metric(page, `warmpath_conversation_move_tokens_total{pool="p",result="used"}`)/moved
	}
	return moved, unused
}
