package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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

// serve starts warmpath with defaults in front of the workers.
func serve(binary, dir string, port, admin int, workers []*vllm) (*router, error) {
	text := fmt.Sprintf("[server]\nlisten = \"127.0.0.1:%d\"\nadmin = \"127.0.0.1:%d\"\n\n[[pools]]\nmodels = [\"*\"]\n",
		port, admin)
	for _, w := range workers {
		text += fmt.Sprintf("\n[[pools.workers]]\nid = %q\nurl = %q\n", w.id, w.url)
	}
	file := filepath.Join(dir, "warmpath.toml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	r := &router{log: filepath.Join(dir, "warmpath.log"), done: make(chan struct{}),
		client: newClient(fmt.Sprintf("http://127.0.0.1:%d", port)), admin: newClient(fmt.Sprintf("http://127.0.0.1:%d",
			admin))}
	log, err := os.Create(r.log)
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
