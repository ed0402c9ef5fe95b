package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
)

// fullFor is for how long all workers are full when the agents ask for the first time. What they make of a 429 is
// theirs: Codex and OpenCode ended their sessions after five tries.
const fullFor = 8 * time.Second

// fullChecks runs all agents at once through a router whose workers have one place each, which are taken for a while.
// They wait in its queue, and none may notice.
func fullChecks(ctx context.Context, main *fleet, t *total) error {
	f, err := openAgents(ctx, main, "max_in_flight = 1\n")
	if err != nil {
		return err
	}
	defer f.close()
	free, err := f.fill(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	time.AfterFunc(fullFor, free)
	defer free()
	failed := make([]error, len(agents))
	var all sync.WaitGroup
	for i := range agents {
		all.Go(func() { failed[i] = agents[i].goesOn(ctx, f) })
	}
	all.Wait()
	if took := time.Since(began); took < fullFor {
		return fmt.Errorf("all agents have ended after %s, while the workers were full", took)
	}
	for i := range agents {
		runChecks(ctx, "agent "+agents[i].name, t, []check{
			{"all workers full for 8 s", func(context.Context) error { return failed[i] }}})
	}
	return nil
}

// goesOn runs the agent, which must end well, with a text, and without a word of a second try.
func (a *agent) goesOn(ctx context.Context, f *fleet) error {
	said, err := a.run(ctx, f)
	if err == nil && !regexp.MustCompile(a.final).MatchString(said) {
		err = fmt.Errorf("there is no text in %s", last([]byte(said)))
	}
	return err
}

// fill takes the one place of each worker, until free is called.
func (h *fleet) fill(ctx context.Context) (free func(), err error) {
	ctx, free = context.WithTimeout(ctx, 2*patience)
	for range agentWorkers {
		req, err := http.NewRequestWithContext(ctx, "POST", h.url+"/v1/completions",
			strings.NewReader(`{"model":"`+model+`","prompt":"fill","stream":true,"ignore_eos":true,"max_tokens":30000}`))
		if err != nil {
			free()
			return nil, err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = errors.New(resp.Status)
		}
		if err != nil {
			free()
			return nil, fmt.Errorf("a worker cannot be filled: %w", err)
		}
		go func() {
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}()
	}
	return free, nil
}
