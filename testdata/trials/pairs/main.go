package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/warmpath/warmpath/testdata/rig"
)

func main() {
	bin := flag.String("bin", "bin/warmpath", "the daemon")
	requests := flag.Int("requests", 10_000, "to each fleet")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of all that is drawn; default: another one each time")
	only := flag.String("connector", "", "only the fleets whose name fits this expression")
	dir := flag.String("dir", "", "folder for configurations and logs, which stay there; default: a temporary one")
	flag.Parse()
	rig.Main("pairs", *dir, func(ctx context.Context, dir string) (ok bool, err error) {
		path, err := filepath.Abs(*bin)
		if err != nil {
			return false, err
		}
		want, err := regexp.Compile(*only)
		if err != nil {
			return false, err
		}
		ok = true
		out := json.NewEncoder(os.Stdout)
		for _, f := range fleets {
			if !want.MatchString(f.name()) {
				continue
			}
			l, err := run(ctx, f, dir, path, *seed, *requests)
			if err != nil {
				return false, err
			}
			ok = ok && l.OK
			_ = out.Encode(l)
		}
		return ok, ctx.Err()
	})
}

// line is the result of a fleet.
type line struct {
	Fleet    string         `json:"fleet"`
	Seed     uint64         `json:"seed"`
	Requests int            `json:"requests"`
	Answers  map[string]int `json:"answers"`            // by status; left: by clients; unsplit: SGLang has no part for it
	Prefills map[string]int `json:"prefills"`           // as the daemon counts them
	Read     int64          `json:"read"`               // prompts that decoders got from prefillers
	Lost     int64          `json:"lost"`               // that were gone
	Ended    int64          `json:"ended,omitempty"`    // first legs that were ended while LMCache stores (vllm 43226)
	Restarts int64          `json:"restarts"`           //
	Reloads  int64          `json:"reloads"`            //
	Stranded int            `json:"stranded"`           // blocks
	Breaches map[string]int `json:"breaches,omitempty"` // doc.go has the list
	Examples []string       `json:"examples,omitempty"`
	OK       bool           `json:"ok"`
	Took     string         `json:"took"`
}

// run plays one fleet behind a daemon.
func run(ctx context.Context, f fleet, dir, bin string, seed uint64, requests int) (l line, err error) {
	began := time.Now()
	st, err := newStage(f, dir, seed, requests)
	if err != nil {
		return l, err
	}
	defer st.close()
	if err := st.serve(bin); err != nil {
		return l, fmt.Errorf("pairs: %s: %w", f.name(), err)
	}
	st.play(ctx)
	l = line{Fleet: f.name(), Seed: seed, Requests: requests, Stranded: st.rest(), Prefills: st.prefilled(),
		Read: st.read.Load(), Lost: st.lost.Load(), Ended: st.ended.Load(), Restarts: st.restarts.Load(),
		Reloads: st.reloads.Load()}
	if l.Read < int64(requests)/20 {
		st.breach("idle", -1, "only %d prompts were handed over", l.Read)
	}
	l.Answers, l.Breaches, l.Examples = st.answers, st.breaches, st.examples
	l.OK, l.Took = len(l.Breaches) == 0, time.Since(began).Round(time.Second).String()
	return l, nil
}
