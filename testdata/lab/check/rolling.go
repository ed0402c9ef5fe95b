package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/setup"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim"
)

// Of a rolling replacement, in simulated time: when the first worker is drained, after how long the next one, how long
// a hand-over may take, and until when turns begin.
const (
	firstDrain   = 300 * time.Second
	steady       = 150 * time.Second // from then on the load is that of before
	nextDrain    = 45 * time.Second
	handOverTime = 40 * time.Second
	rollingEnd   = firstDrain + 8*nextDrain
)

// rollingLine is what the clients of one daemon saw before the replacement began, and during it.
type rollingLine struct {
	Scenario string  `json:"scenario"`
	Mode     string  `json:"mode"` // still: no worker is replaced; drain; hand-over
	Before   side    `json:"before"`
	During   side    `json:"during"`
	Moved    float64 `json:"moved_tokens"`
	Unused   float64 `json:"unused_share"` // of the tokens moved
}

// checkRolling replaces eight workers one by one while agents use them, without and with a hand-over, and prints a line
// for each. The lab's scenario has the load. Conversations end by the clock, so that a speed other than 1 has the
// router take too many or too few for ended.
func checkRolling(ctx context.Context, seed uint64, speed float64) error {
	sc, err := setup.Read("rolling")
	if err != nil {
		return err
	}
	modes := []string{"still", "drain", "hand-over"}
	lines, errs := make([]*rollingLine, len(modes)), make([]error, len(modes))
	var all sync.WaitGroup
	for i, mode := range modes {
		all.Go(func() { lines[i], errs[i] = roll(ctx, sc, mode, seed, speed) })
	}
	all.Wait()
	for i, line := range lines {
		if errs[i] != nil {
			return fmt.Errorf("%s: %w", modes[i], errs[i])
		}
		if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
			return err
		}
	}
	return nil
}

// roll plays the load to one daemon.
func roll(ctx context.Context, sc *setup.Scenario, mode string, seed uint64, speed float64) (*rollingLine, error) {
	load, err := sc.Load(seed)
	if err != nil {
		return nil, err
	}
	for i := range load.Chats { // real agents name their sessions; a hand-over needs no names
		load.Chats[i].Session = 0
	}
	line := &rollingLine{Scenario: "rolling", Mode: mode}
	at := site{rule: &rule{name: "prefixaware"}, workers: sc.Workers, pool: "hand_over_bytes = 268435456\n",
		sim: vllmsim.Config{Models: []string{"m"}, KVTokens: sc.Engine.KVTokens, Speed: speed,
			MaxBatchedTokens: sc.Engine.MaxBatchedTokens, Model: sc.Engine.Config().Model}}
	return line, served(ctx, at, func(url, admin string, fleet vllmsim.Fleet) error {
		cl := clients{url: url, began: time.Now().Add(2 * time.Second), speed: speed, until: rollingEnd}
		var all sync.WaitGroup
		if mode != "still" {
			all.Go(func() {
				if err := replaceAll(&cl, admin, fleet, mode == "hand-over"); err != nil {
					cl.mu.Lock()
					cl.errs = append(cl.errs, err)
					cl.mu.Unlock()
				}
			})
		}
		for i := range load.Chats {
			cl.chats.Go(func() { cl.play(ctx, &load.Chats[i]) })
		}
		time.Sleep(time.Until(cl.began.Add(cl.real(steady))))
		cl.mu.Lock()
		cl.seen = sums{}
		cl.mu.Unlock()
		time.Sleep(time.Until(cl.began.Add(cl.real(firstDrain))))
		cl.mu.Lock()
		before := cl.seen
		cl.seen = sums{}
		cl.mu.Unlock()
		cl.chats.Wait()
		all.Wait()
		line.Before, line.During = before.side(), cl.seen.side()
		line.Moved, line.Unused, err = moves(admin)
		return errors.Join(append(cl.errs, err)...)
	})
}

// replaceAll drains the workers one after the other, ends each when it has no request any more, and starts it again
// with an empty cache.
func replaceAll(cl *clients, admin string, fleet vllmsim.Fleet, handOver bool) error {
	for i, w := range fleet {
		time.Sleep(time.Until(cl.began.Add(cl.real(firstDrain + time.Duration(i)*nextDrain))))
		drain := fmt.Sprintf("%s/api/v1/pools/p/workers/w%d/drain", admin, i)
		path := drain
		if handOver {
			path += "?hand_over=" + cl.real(handOverTime).String()
		}
		if err := call("POST", path); err != nil {
			return err
		}
		if handOver {
			time.Sleep(cl.real(handOverTime))
		}
		if err := awaitIdle(w, cl.real(nextDrain)); err != nil {
			return err
		}
		if err := w.Kill(); err != nil {
			return err
		}
		if err := w.Restart(); err != nil {
			return err
		}
		if err := call("DELETE", drain); err != nil {
			return err
		}
	}
	return nil
}

// awaitIdle waits until a worker has had no request for half a second.
func awaitIdle(w *vllmsim.Server, within time.Duration) error {
	quiet := time.Now()
	for end := quiet.Add(within); time.Since(quiet) < 500*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if s := w.Stats(); s.Running+s.Waiting > 0 {
			quiet = time.Now()
		}
		if time.Now().After(end) {
			return errors.New("a drained worker does not become idle")
		}
	}
	return nil
}

func call(method, url string) error {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, url, resp.Status)
	}
	return nil
}

// moves returns how many tokens a hand-over has moved, and the share of them that no next turn used.
func moves(admin string) (moved, unused float64, err error) {
	resp, err := http.Get(admin + "/metrics")
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	used := 0.0
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		n, _ := strconv.ParseFloat(value, 64)
		switch name {
		case `warmpath_conversation_move_tokens_total{pool="p",result="moved"}`:
			moved = n
		case `warmpath_conversation_move_tokens_total{pool="p",result="used"}`:
			used = n
		}
	}
	if moved > 0 {
		unused = 1 - used/moved
	}
	return moved, unused, lines.Err()
}
