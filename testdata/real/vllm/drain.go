package main

import (
	"context"
	"errors"
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

// pace finds out how many tokens a stream has after about so long, six streams beside each other: machines differ by
// ten.
func (s *scene) pace(ctx context.Context, d time.Duration) int {
	const probe = 60
	began := time.Now()
	s.long(ctx, 6, probe)()
	return min(4000, max(100, int(probe*d.Seconds()/time.Since(began).Seconds())))
}

// checkDrain sends SIGTERM to a worker that streams, as an orchestrator does. vLLM then ends what it runs, and answers
// everything new with a 200 that hides a failure. /health stays 200 all the while.
func checkDrain(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Minute)
	defer cancel()
	w := s.workers[0]
	tokens := s.pace(ctx, 6*time.Second) // a third of --shutdown-timeout, as the load slows them down
	streams := s.long(ctx, 6, tokens)
	if err := s.waitRunning(ctx, func(n float64) bool { return n >= 6 }); err != nil {
		return "", err
	}
	load := startLoad(ctx, s.router.client, 4)
	time.Sleep(500 * time.Millisecond)
	told := time.Now()
	if err := w.term(); err != nil {
		return "", err
	}
	noticed, state, stateErr := s.router.waitState(ctx, w.id, "up", true)
	trials := s.upAgain(ctx, w)
	ended := time.Since(told)
	cut, n := error(nil), 0
	for _, a := range streams() {
		if a.worker() != w.id {
			continue
		}
		n++
		if err := a.fault(); err != nil || a.number("usage", "completion_tokens") != tokens {
			cut = fmt.Errorf("a stream at %s was cut: %v, %d tokens", w.id, err, a.number("usage", "completion_tokens"))
		}
	}
	time.Sleep(time.Second)
	figure, err := tally(load.end())
	w.kill() // what a worker that has ended may have left
	if n == 0 {
		cut = fmt.Errorf("none of the streams was at %s", w.id)
	}
	if err := errors.Join(cut, stateErr, err); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d streams of %d tokens at w1 finished, it ended after %.1f s; %q %d ms after SIGTERM, tried "+
		"again %d times; %s",
		n, tokens, ended.Seconds(), state, noticed.Sub(told).Milliseconds(), trials, figure), nil
}

// upAgain counts how often the router takes a worker for up until its process ends: a breaker that lets one request
// try.
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
	load := startLoad(ctx, s.router.client, 2) // few: it takes time from the start
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
	took := max(0, used.Sub(up))
	figure, err := tally(load.end())
	if took > backWithin {
		err = errors.Join(err, fmt.Errorf("longer than %v", backWithin))
	}
	text := fmt.Sprintf("%s started in %.0f s, used %d ms after its /health was 200; %s", s.workers[i].id,
		up.Sub(began).Seconds(),
		took.Milliseconds(), figure)
	if err != nil {
		return "", fmt.Errorf("%s%w", text, err)
	}
	return text, nil
}
