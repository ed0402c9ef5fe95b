package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"
)

// checkKill ends a worker and its engine with SIGKILL while it streams. What had no byte yet must be answered by the
// other one; a stream that had begun must end with an error event and a broken connection, never as if it were whole.
func checkKill(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	w := s.workers[1]
	streams := s.long(ctx, 6, s.pace(ctx, 6*time.Second))
	load := startLoad(ctx, s.router.client, 8)
	if err := s.waitRunning(ctx, func(n float64) bool { return n >= 6 }); err != nil {
		return "", err
	}
	time.Sleep(time.Second)
	killed := time.Now()
	w.kill()
	_, state, stateErr := s.router.waitState(ctx, w.id, "up", true)
	noticed := time.Since(killed)
	broken := 0
	for _, a := range streams() {
		if a.worker() != w.id {
			if err := a.fault(); err != nil {
				return "", fmt.Errorf("a stream at %q: %w", a.worker(), err)
			}
			continue
		}
		if err := honest(a); err != nil {
			return "", fmt.Errorf("a stream at %s when it was killed: %w", w.id, err)
		}
		broken++
	}
	begun, unanswered, err := brokenBegun(load.end(), killed)
	if err != nil {
		return "", err
	}
	broken += begun
	open := 0
	for _, a := range unanswered {
		if a.sent.Before(killed) && (a.first.IsZero() || a.first.After(killed)) {
			open++
		}
	}
	figure, err := tally(unanswered)
	switch {
	case err != nil:
		return "", err
	case stateErr != nil:
		return "", stateErr
	case broken == 0:
		return "", fmt.Errorf("no stream was at %s", w.id)
	case !w.gone():
		return "", fmt.Errorf("something of %s's process group is left", w.id)
	}
	return fmt.Sprintf("%d streams that had begun told of the break; %q after %d ms; %d were open without a byte; %s",
		broken, state,
		noticed.Milliseconds(), open, figure), nil
}

// brokenBegun takes the streams that had begun when a worker was killed, and broke off, out of a load's answers.
func brokenBegun(answers []loaded, killed time.Time) (begun int, rest []loaded, err error) {
	for _, a := range answers {
		if a.err == nil || !a.first.Before(killed.Add(20*time.Millisecond)) || !a.events() || a.first.IsZero() {
			rest = append(rest, a)
			continue
		}
		if err := honest(a.answer); err != nil {
			return 0, nil, err
		}
		begun++
	}
	return begun, rest, nil
}

// honest says why a stream that broke off does not look so; nil if it does.
func honest(a *answer) error {
	switch {
	case a.status != http.StatusOK:
		return fmt.Errorf("status %d", a.status)
	case a.err == nil:
		return fmt.Errorf("it ended cleanly after %d bytes: %s", len(a.body), a.body[max(0, len(a.body)-300):])
	case bytes.Contains(a.body, []byte("[DONE]")):
		return fmt.Errorf("it has a [DONE]")
	case !bytes.Contains(a.body, []byte(`"error"`)):
		return fmt.Errorf("it has no error event: %s", a.body[max(0, len(a.body)-300):])
	}
	return nil
}
