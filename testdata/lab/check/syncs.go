package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// How long the weights of an update take, in simulated time, and how many updates there are.
const (
	syncSeconds = .5
	syncs       = 100

	turnsPerSecond = 1.5 // of all agents, in simulated time
)

// syncLine is what the clients of one daemon saw while a trainer updated the weights.
type syncLine struct {
	Mode   string `json:"mode"` // still: no updates
	Syncs  int    `json:"syncs"`
	Turns  int    `json:"turns"`
	Failed int    `json:"failed_turns"`   // an error, another end than "length", or text that lacks
	Stale  int64  `json:"stale_requests"` // that workers served from blocks of other weights
	Labels int    `json:"labels"`         // answers with X-Warmpath-Weights
	Wrong  int    `json:"wrong_labels"`   // of these
	side
	Before float64 `json:"blocks_before"` // of the index, at the end, before and after a pause by mode keep
	After  float64 `json:"blocks_after"`
	Told   bool    `json:"told"` // at the end each worker's row said whether its KV cache had blocks of older weights
	Error  string  `json:"first_error,omitempty"`
}

// checkSyncs has eight workers get new weights a hundred times while agents use them, with each mode of a pause, and
// prints a line for each. between is from the beginning of one update to that of the next, in simulated time. By mode
// abort a step of an engine must not take as long: what is ended before its first token begins anew.
func checkSyncs(ctx context.Context, modes string, between time.Duration, seed uint64, speed float64) error {
	sc, err := read("rolling")
	if err != nil {
		return err
	}
	sc.Requests = int(syncs * between.Seconds() * turnsPerSecond)
	for i := range sc.Classes { // they come all the time
		c := &sc.Classes[i]
		c.Rate = turnsPerSecond / float64(len(sc.Classes)) / float64(sc.Workers) / float64(c.Turns)
	}
	ok := true
	var still *syncLine
	for _, mode := range strings.Split(modes, ",") {
		line, err := update(ctx, sc, mode, between, seed, speed)
		if err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
		if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
			return err
		}
		if mode == "still" {
			still = line
		}
		// by mode keep the trainer has the engines go on with what the old weights have computed
		ok = ok && line.Failed+line.Wrong == 0 && line.Before == line.After && (line.Stale == 0 || mode == "keep") &&
			line.Told
		if mode == "keep" && still != nil && line.Hits < still.Hits-.01 {
			ok = false
		}
	}
	if !ok {
		return errors.New("a turn has failed, an answer is of other weights than it says, or the belief is another one")
	}
	return nil
}

// update plays the load to one daemon.
func update(ctx context.Context, sc *setup.Scenario, mode string, between time.Duration, seed uint64, speed float64) (
	*syncLine, error) {
	load, err := sc.Load(seed)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "labcheck")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte(syncToken), 0o600); err != nil {
		return nil, err
	}
	line := &syncLine{Mode: mode}
	at := site{rule: &rule{name: "prefixaware"}, workers: sc.Workers, pool: "continue = 3\n",
		server: fmt.Sprintf("admin_token_file = %q\n", token),
		sim: vllmsim.Config{Models: []string{"m"}, KVTokens: sc.Engine.KVTokens, Speed: speed, DevMode: true,
			MaxBatchedTokens: sc.Engine.MaxBatchedTokens, Model: sc.Engine.Config().Model}}
	return line, served(ctx, at, func(base, admin string, fleet vllmsim.Fleet) error {
		cl := clients{url: base, began: time.Now().Add(2 * time.Second), speed: speed, until: syncs * between}
		cl.check = func(h http.Header, last event, end string, lacks int) {
			label := h.Get("X-Warmpath-Weights")
			_, truth, _ := strings.Cut(last.Fingerprint, "-weights-")
			truth, _, _ = strings.Cut(truth, "-stale-")
			cl.mu.Lock()
			defer cl.mu.Unlock()
			line.Turns++
			if end != "length" || lacks > 0 {
				line.Failed++
				if line.Error == "" {
					line.Error = fmt.Sprintf("finish_reason %q, %d bytes are lacking", end, lacks)
				}
			}
			if label != "" {
				line.Labels++
				if label != truth && !(mode == "abort" && strings.HasSuffix(label, "-"+truth)) {
					line.Wrong++
					line.Error = fmt.Sprintf("labelled %q, computed by %q", label, truth)
				}
			}
		}
		var trainer sync.WaitGroup
		if mode != "still" {
			trainer.Go(func() {
				for n := range syncs {
					time.Sleep(time.Until(cl.began.Add(cl.real(time.Duration(n) * between))))
					if err := newWeights(admin, mode, n+1); err != nil {
						cl.mu.Lock()
						cl.errs = append(cl.errs, err)
						cl.mu.Unlock()
						return
					}
					line.Syncs++
				}
			})
		}
		for i := range load.Chats {
			cl.chats.Go(func() { cl.play(ctx, &load.Chats[i]) })
		}
		cl.chats.Wait()
		trainer.Wait()
		line.side = cl.seen.side()
		line.Failed += len(cl.errs)
		line.Turns += len(cl.errs)
		if len(cl.errs) > 0 {
			line.Error = cl.errs[0].Error()
		}
		for _, w := range fleet {
			line.Stale += w.Stats().StaleRequests
		}
		rows, err := authorized("GET", admin+"/api/v1/pools", "")
		if err != nil {
			return err
		}
		line.Told = strings.Contains(rows, `"kv_weights":`) == (mode == "keep")
		line.Before, err = believed(admin)
		for _, path := range []string{"/pause?mode=keep&clear_cache=false", "/resume"} {
			err = errors.Join(err, order(admin, path, ""))
			time.Sleep(2 * time.Second)
		}
		after, err2 := believed(admin)
		line.After = after
		return errors.Join(err, err2)
	})
}

// newWeights plays one update to all workers.
func newWeights(admin, mode string, version int) error {
	pause := mode
	switch mode {
	case "keep":
		pause = "keep&clear_cache=false"
	case "keep-reset":
		pause = "keep"
	}
	steps := [][2]string{{"/pause?mode=" + pause}, {"/start_weight_update"},
		{"/update_weights", fmt.Sprintf(`{"update_info":{"seconds":%v}}`, syncSeconds)},
		{"/finish_weight_update", fmt.Sprintf(`{"weight_version":"%d"}`, version)}, {"/resume"}}
	for _, s := range steps {
		if err := order(admin, s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

const syncToken = "sesame-sesame"

// authorized sends a request to the admin port, and returns the answer's body.
func authorized(method, to, body string) (string, error) {
	req, err := http.NewRequest(method, to, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+syncToken)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, to, resp.Status, text)
	}
	return string(text), err
}

// order sends a call to all workers.
func order(admin, path, body string) error {
	_, err := authorized("POST", admin+"/api/v1/pools/p/each?timeout=2m&path="+url.QueryEscape(path), body)
	return err
}

// believed returns how many blocks the router believes to be in the workers' caches.
func believed(admin string) (n float64, err error) {
	page, err := authorized("GET", admin+"/metrics", "")
	lines := bufio.NewScanner(strings.NewReader(page))
	for lines.Scan() {
		if rest, is := strings.CutPrefix(lines.Text(), "warmpath_index_blocks{"); is {
			_, value, _ := strings.Cut(rest, "} ")
			v, _ := strconv.ParseFloat(value, 64)
			n += v
		}
	}
	return n, err
}
