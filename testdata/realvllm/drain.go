package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// backWithin is how soon a worker must be used again after its /health says 200.
const backWithin = 2 * time.Second

// long starts streams of so many tokens at both workers. The returned function waits for their answers.
func (s *scene) long(ctx context.Context, streams, tokens int) func() []*answer {
	answers := make([]*answer, streams)
	var wg sync.WaitGroup
	for i := range answers {
		wg.Go(func() {
			answers[i] = s.router.client.post(ctx, "/v1/chat/completions", chatBody(said("user", fresh(40)), tokens, true))
		})
	}
	return func() []*answer {
		wg.Wait()
		return answers
	}
}

// checkDrain sends SIGTERM to a worker that streams, as an orchestrator does. vLLM then ends what it runs, and answers
// everything new with a 200 that hides a failure. /health stays 200 all the while.
func checkDrain(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	w := s.workers[0]
	streams := s.long(ctx, 6, 1000)
	if err := s.waitRunning(ctx, func(n float64) bool { return n >= 6 }); err != nil {
		return "", err
	}
	load := startLoad(ctx, s.router.client, 4)
	time.Sleep(time.Second)
	told := time.Now()
	if err := w.term(); err != nil {
		return "", err
	}
	noticed, state, stateErr := s.router.waitState(ctx, w.id, "up", true)
	flapped := s.upAgain(ctx, w)
	ended := time.Since(told)
	cut, n := error(nil), 0
	for _, a := range streams() {
		if a.worker() != w.id {
			continue
		}
		n++
		if err := a.fault(); err != nil || a.number("usage", "completion_tokens") != 1000 {
			cut = fmt.Errorf("a stream at %s was cut: %v, %d tokens", w.id, err, a.number("usage", "completion_tokens"))
		}
	}
	time.Sleep(time.Second)
	figure, err := tally(load.end())
	w.kill() // what a worker that has ended may have left
	switch {
	case stateErr != nil:
		return "", stateErr
	case err != nil:
		return "", err
	case cut != nil:
		return "", cut
	case n == 0:
		return "", fmt.Errorf("none of the streams was at %s", w.id)
	case flapped > 0:
		return "", fmt.Errorf("%s was taken for up again %d times while it drained", w.id, flapped)
	}
	return fmt.Sprintf("%d streams at w1 finished, it ended after %.1f s; %q %d ms after SIGTERM; %s", n, ended.Seconds(), state,
		noticed.Sub(told).Milliseconds(), figure), nil
}

// upAgain counts how often a worker's state turns to up until its process ends.
func (s *scene) upAgain(ctx context.Context, w *vllm) (times int) {
	was := ""
	for {
		if states, err := s.router.states(ctx); err == nil {
			if states[w.id] == "up" && was != "up" {
				times++
			}
			was = states[w.id]
		}
		select {
		case <-w.done:
			return times
		case <-ctx.Done():
			return times
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func checkDrainReturn(ctx context.Context, s *scene) (string, error) { return s.comesBack(ctx, 0) }

func checkKillReturn(ctx context.Context, s *scene) (string, error) { return s.comesBack(ctx, 1) }

// comesBack starts worker i again under load.
func (s *scene) comesBack(ctx context.Context, i int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit+time.Minute)
	defer cancel()
	load := startLoad(ctx, s.router.client, 4)
	defer load.end()
	if err := s.start(i); err != nil {
		return "", err
	}
	began := time.Now()
	up, err := s.workers[i].ready(ctx)
	if err != nil {
		return "", err
	}
	limit, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	used, err := load.firstFrom(limit, s.workers[i].id, began)
	if err != nil {
		return "", err
	}
	time.Sleep(2 * time.Second)
	figure, err := tally(load.end())
	if err != nil {
		return "", err
	}
	took := used.Sub(up)
	if took > backWithin {
		return "", fmt.Errorf("%s was used only %v after its /health was 200", s.workers[i].id, took)
	}
	return fmt.Sprintf("%s started in %.0f s, used %d ms after its /health was 200; %s", s.workers[i].id, up.Sub(began).Seconds(),
		max(0, took.Milliseconds()), figure), nil
}
