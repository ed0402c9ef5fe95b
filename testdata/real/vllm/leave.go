package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"
)

// freed is how soon after a client's leaving both engines must be idle. vLLM itself takes 20-40 ms to notice; the rest
// is for a machine that does other things beside.
const freed = time.Second

// checkLeave lets clients go before the first byte and in the middle of a stream.
func checkLeave(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var figures []string
	for _, c := range []struct {
		name string
		kind int
		text int // words of the prompt; some 2.4 tokens each
		mid  bool
	}{
		{name: "chat in prefill", kind: 1, text: 2800, mid: false},
		{name: "chat, no byte yet", kind: 0, text: 20, mid: false},
		{name: "chat mid-stream", kind: 1, text: 20, mid: true},
		{name: "completion, no byte yet", kind: 2, text: 20, mid: false},
		{name: "completion mid-stream", kind: 3, text: 20, mid: true},
		{name: "response, no byte yet", kind: 4, text: 20, mid: false},
		{name: "response mid-stream", kind: 5, text: 20, mid: true},
		{name: "message, no byte yet", kind: 6, text: 20, mid: false},
		{name: "message mid-stream", kind: 7, text: 20, mid: true},
	} {
		took, err := s.leave(ctx, kinds[c.kind], c.text, c.mid)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.name, err)
		}
		figures = append(figures, fmt.Sprintf("%s %d ms", c.name, took.Milliseconds()))
	}
	return "engines idle after: " + strings.Join(figures, ", "), nil
}

// leave sends a request of 1000 tokens and goes when an engine has it; mid: when five events have come.
func (s *scene) leave(ctx context.Context, k kind, text int, mid bool) (time.Duration, error) {
	if n, err := s.running(ctx); err != nil || n != 0 {
		return 0, fmt.Errorf("%v requests run before (%v)", n, err)
	}
	client, goes := context.WithCancel(ctx)
	defer goes()
	events := make(chan struct{}, 1)
	ended := make(chan *answer, 1)
	go func() {
		ended <- s.router.client.send(client, "POST", k.path, k.body(fresh(text), 1000), func(soFar []byte) {
			if bytes.Count(soFar, []byte("data: ")) >= 5 {
				select {
				case events <- struct{}{}:
				default:
				}
			}
		})
	}()
	if mid {
		select {
		case <-events:
		case a := <-ended:
			return 0, fmt.Errorf("it ended before the client left: %v, %.200s", a.fault(), a.body)
		}
	} else if err := s.waitRunning(ctx, func(n float64) bool { return n > 0 }); err != nil {
		return 0, err
	}
	left := time.Now()
	goes()
	if a := <-ended; a.err == nil {
		return 0, fmt.Errorf("it ended before the client left: %v, %.200s", a.fault(), a.body)
	} else if !mid && len(a.body) > 0 {
		return 0, fmt.Errorf("%d bytes had come before the client left", len(a.body))
	}
	limit, cancel := context.WithDeadline(ctx, left.Add(10*time.Second))
	defer cancel()
	if err := s.waitRunning(limit, func(n float64) bool { return n == 0 }); err != nil {
		return 0, err
	}
	took := time.Since(left)
	if took > freed {
		return 0, fmt.Errorf("the engine ran on for %v", took)
	}
	return took, nil
}

// waitRunning waits until the number of requests in both engines is as wanted.
func (s *scene) waitRunning(ctx context.Context, want func(float64) bool) error {
	last := -1.0
	for {
		n, err := s.running(ctx)
		if err == nil {
			if want(n) {
				return nil
			}
			last = n
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%v requests run at the deadline", last)
		}
		time.Sleep(2 * time.Millisecond) // a scrape costs the worker some 10 ms
	}
}
