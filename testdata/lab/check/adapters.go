package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/trial"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// What -adapters sends: so many requests over so many adapters, the k-th of which is asked for 1/k as often as the
// first, to so many workers with so many places each.
const (
	adapterRequests = 2000
	adapterNames    = 200
	adapterWorkers  = 8
	adapterPlaces   = 8
	adapterRate     = 20. // requests a simulated second
	adapterLoad     = .5  // simulated seconds of a load
	adapterTokens   = 64  // of each answer
)

// adapterFinding is what one strategy makes of them. Times are simulated seconds.
type adapterFinding struct {
	Strategy string  `json:"strategy"`
	Loads    float64 `json:"loads_per_1000"`
	P50      float64 `json:"ttft_p50"`
	P90      float64 `json:"ttft_p90"`
	Failed   int     `json:"failed"`
	why      error   // the last did
}

// checkAdapters plays the load to a daemon for each strategy, one after the other. With load the daemon loads the
// adapters on demand, as many as a worker has places; without all workers list all of them.
func checkAdapters(ctx context.Context, load bool, speed float64, seed uint64) error {
	dir, err := os.MkdirTemp("", "labcheck")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	hash := rule{name: "rendezvous", path: filepath.Join(dir, "rendezvous.wasm")}
	c := exec.CommandContext(ctx, "go", "build", "-C", "testdata", "-buildmode=c-shared", "-trimpath",
		"-ldflags=-s -w -buildid=", "-o", hash.path, "./lab/check/rendezvous")
	c.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	for _, r := range []*rule{{name: "prefixaware"}, &hash, {name: "roundrobin"}} {
		f, err := playAdapters(ctx, r, load, speed, seed)
		if err != nil {
			return err
		}
		if f.Failed == adapterRequests {
			return fmt.Errorf("%s: no request was answered: %w", r.name, f.why)
		}
		_ = json.NewEncoder(os.Stdout).Encode(f) // standard output may be closed
	}
	return nil
}

// playAdapters plays the load to a daemon with one strategy.
func playAdapters(ctx context.Context, r *rule, load bool, speed float64, seed uint64) (f adapterFinding, err error) {
	f.Strategy = r.name
	s := site{rule: r, workers: adapterWorkers, sim: vllmsim.Config{MaxLoras: adapterPlaces, LoraLoad: adapterLoad,
		Speed: speed}}
	if load {
		s.pool = fmt.Sprintf("[pools.adapters]\nsource = \"/adapters/{name}\"\nmax = %d\n", adapterPlaces)
	} else {
		for k := range adapterNames {
			s.sim.Loras = append(s.sim.Loras, fmt.Sprintf("a%d", k))
		}
	}
	var ttft []float64
	err = served(ctx, s, func(url, _ string, fleet vllmsim.Fleet) error {
		var all sync.WaitGroup
		var mu sync.Mutex // guards ttft and f
		rng, at, began := rand.New(rand.NewPCG(seed, 1)), 0., time.Now()
		for range adapterRequests {
			at += rng.ExpFloat64() / adapterRate
			name := fmt.Sprintf("a%d", zipf(rng))
			time.Sleep(time.Until(began.Add(time.Duration(at / speed * float64(time.Second)))))
			all.Go(func() {
				first, err := askAdapter(ctx, url, name)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					f.Failed++
					f.why = err
					return
				}
				ttft = append(ttft, first.Seconds()*speed)
			})
		}
		all.Wait()
		for i := range fleet {
			f.Loads += float64(fleet[i].Stats().AdapterLoads) * 1000 / adapterRequests
		}
		return nil
	})
	f.P50, f.P90 = trial.Quantile(ttft, .5), trial.Quantile(ttft, .9)
	return f, err
}

// zipf draws an adapter.
func zipf(rng *rand.Rand) int {
	sum := 0.
	for k := range adapterNames {
		sum += 1 / float64(k+1)
	}
	x := rng.Float64() * sum
	for k := range adapterNames {
		x -= 1 / float64(k+1)
		if x < 0 {
			return k
		}
	}
	return 0
}

// askAdapter sends a prompt of its own to an adapter, and returns when its first token came.
func askAdapter(ctx context.Context, url, name string) (first time.Duration, err error) {
	prompt := strings.Repeat(fmt.Sprint(rand.Uint64(), " "), 40)
	body, _ := json.Marshal(map[string]any{"model": name, "prompt": prompt, "stream": true, "max_tokens": adapterTokens})
	began := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", strings.NewReader(string(body)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	one := [1]byte{}
	if _, err := resp.Body.Read(one[:]); err != nil || resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		return 0, errors.Join(err, fmt.Errorf("status %d: %s%s", resp.StatusCode, one[:], said))
	}
	first = time.Since(began)
	for buf := make([]byte, 4096); err == nil; {
		_, err = resp.Body.Read(buf)
	}
	return first, nil
}
