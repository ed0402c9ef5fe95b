package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// router is a running `warmpath serve`.
type router struct {
	client, admin *client
	log           string
	cmd           *exec.Cmd
	done          chan struct{}
}

// settings are what a router is started with; the rest is defaults.
type settings struct {
	name        string // of its files
	port, admin int
	strategy    string        // "" = the default
	kvTokens    int           // of each worker; 0 = as the worker says
	events      bool          // follow the workers' KV events
	budget      time.Duration // of asking a worker for a prompt's ids
	workers     []*vllm
	connector   string // the first worker computes prompts for the others; "" = each does both
	answers     bool   // it gives answers too
	pool, more  string // lines of the pool, and others behind all tables
}

// adminToken is that of each router's admin port: without one it sends workers no calls.
const adminToken = "sesame-sesame"

// text is the configuration file.
func (c *settings) text(dir string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\naccess_log = %q\n"+
		"admin_token_file = %q\n", c.port, c.admin, filepath.Join(dir, c.name+".access"), filepath.Join(dir, "token"))
	b.WriteString("\n[[pools]]\nname = \"main\"\nmodels = [\"*\"]\n" + c.pool)
	if c.strategy != "" {
		fmt.Fprintf(&b, "strategy = %q\n", c.strategy)
	}
	if c.events {
		fmt.Fprintf(&b, "tokens = { budget = %q }\n", c.budget)
	}
	if c.connector != "" { // with the other rule a decoder keeps what it computes sooner, as it may these short prompts
		fmt.Fprintf(&b, "[pools.disaggregation]\nconnector = %q\nrule = \"threshold\"\nthreshold = %d\n"+
			"prefillers_answer = %v\n", c.connector, pairThreshold, c.answers)
	}
	for i, w := range c.workers {
		fmt.Fprintf(&b, "\n[[pools.workers]]\nid = %q\nurl = %q\n", w.id, w.url)
		if c.connector != "" {
			fmt.Fprintf(&b, "role = %q\n", []string{"prefill", "decode"}[min(i, 1)])
		}
		if c.kvTokens > 0 {
			fmt.Fprintf(&b, "kv_tokens = %d\n", c.kvTokens)
		}
		if c.events {
			fmt.Fprintf(&b, "kv_events = %q\nkv_events_replay = %q\n", w.events, w.replay)
		}
	}
	return b.String() + c.more
}

// serve starts warmpath.
func serve(binary, dir string, c settings) (*router, error) {
	file := filepath.Join(dir, c.name+".toml")
	for name, text := range map[string]string{file: c.text(dir), filepath.Join(dir, "token"): adminToken} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return nil, err
		}
	}
	r := &router{log: filepath.Join(dir, c.name+".log"), done: make(chan struct{}),
		client: newClient(fmt.Sprintf("http://127.0.0.1:%d", c.port)),
		admin:  newClient(fmt.Sprintf("http://127.0.0.1:%d", c.admin))}
	r.admin.token = adminToken
	log, err := os.OpenFile(r.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600) // a restarted router goes on in it
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r.cmd = exec.Command(binary, "serve", "--config", file)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for this program, which then stops its children
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.done)
	}()
	return r, nil
}

func (r *router) kill() {
	_ = r.cmd.Process.Kill()
	<-r.done
}

// live waits until the router goes by the KV events of all workers.
func (r *router) live(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		a := r.admin.send(ctx, "GET", "/api/v1/pools", nil, nil)
		var pools []struct {
			Workers []struct {
				Events struct{ Live bool } `json:"kv_events"`
			}
		}
		all := json.Unmarshal(a.body, &pools) == nil && len(pools) == 1
		for i := range pools {
			for _, w := range pools[i].Workers {
				all = all && w.Events.Live
			}
		}
		if all {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("KV events are not live: %s", a.body)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// states tells for each worker what the router thinks of it: up, down, ...
func (r *router) states(ctx context.Context) (map[string]string, error) {
	a := r.admin.send(ctx, "GET", "/api/v1/pools", nil, nil)
	if a.err != nil || a.status != http.StatusOK {
		return nil, fmt.Errorf("/api/v1/pools: status %d, %w", a.status, a.err)
	}
	var pools []struct {
		Workers []struct {
			ID, State string
			Models    []string
		}
	}
	if err := json.Unmarshal(a.body, &pools); err != nil {
		return nil, err
	}
	s := map[string]string{}
	for _, p := range pools {
		for _, w := range p.Workers {
			s[w.ID] = w.State
			if w.State == "up" && w.Models == nil {
				s[w.ID] = "up, models not yet known"
			}
		}
	}
	return s, nil
}

// up waits until the router has all workers.
func (r *router) up(ctx context.Context, workers []*vllm) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	for _, w := range workers {
		if _, _, err := r.waitState(ctx, w.id, "up", false); err != nil {
			return err
		}
	}
	return nil
}

// waitState waits until a worker's state is, or with not = true is not, the given one, and returns when and which it
// was.
func (r *router) waitState(ctx context.Context, id, state string, not bool) (time.Time, string, error) {
	var last string
	for {
		s, err := r.states(ctx)
		if err == nil {
			last = s[id]
			if (last == state) != not {
				return time.Now(), last, nil
			}
		}
		select {
		case <-r.done:
			return time.Time{}, "", fmt.Errorf("warmpath ended; its log ends with:\n%s", tail(r.log))
		case <-ctx.Done():
			return time.Time{}, last, fmt.Errorf("worker %s is still %q (%w)", id, last, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
