package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// checkSessions opens sessions that vLLM itself keeps, in a folder of each worker's own, uses and closes them.
func checkSessions(ctx context.Context, s *scene) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	const path = "/endpoints/main/invocations"
	c := s.router.client
	opened := make([]*answer, 6)
	var wg sync.WaitGroup
	for i := range opened { // side by side, so that both workers get some
		wg.Go(func() { opened[i] = c.post(ctx, path, object{"requestType": "NEW_SESSION"}) })
	}
	wg.Wait()
	var ids []string
	at := map[string]int{}
	for _, a := range opened {
		id, end, _ := strings.Cut(a.header.Get("X-Amzn-SageMaker-New-Session-Id"), "; Expires=")
		if _, err := time.Parse("2006-01-02T15:04:05Z", end); a.err != nil || a.status != 200 || err != nil {
			return "", fmt.Errorf("open: status %d (%v) %v: %.300s", a.status, a.err, a.header, a.body)
		}
		where, err := s.keeper(id)
		if err != nil {
			return "", err
		}
		at[where]++
		ids = append(ids, id)
	}
	for _, id := range ids {
		where, err := s.keeper(id)
		if err != nil {
			return "", err
		}
		for _, stream := range []bool{false, true, false} {
			p := path
			if stream {
				p += "-response-stream"
			}
			a := c.in(id).post(ctx, p, chatBody(said("user", fresh(20)), 4, stream))
			if a.status != 200 || a.err != nil || a.worker() != where {
				return "", fmt.Errorf("use, stream %v: status %d at %q (%v), want %s: %.300s", stream, a.status, a.worker(), a.err,
					where, a.body)
			}
		}
		if a := c.in(id).post(ctx, path, object{"requestType": "CLOSE"}); a.status != 200 ||
			a.header.Get("X-Amzn-SageMaker-Closed-Session-Id") != id {
			return "", fmt.Errorf("close: status %d (%v) %v: %.300s", a.status, a.err, a.header, a.body)
		}
		if where, err := s.keeper(id); err == nil {
			return "", fmt.Errorf("closed, and %s still has it", where)
		}
		for _, body := range []object{chatBody(said("user", "x"), 4, false), {"requestType": "CLOSE"}} {
			if a := c.in(id).post(ctx, path, body); a.status != 400 || a.header.Get("X-Amzn-ErrorType") != "ValidationError" ||
				a.text("Message") == "" {
				return "", fmt.Errorf("after the close: status %d (%v) %v: %.300s", a.status, a.err, a.header, a.body)
			}
		}
	}
	a := c.post(ctx, path, object{"model": "tiny", "messages": said("user", "x"), "temperature": -1})
	if a.status != 424 || a.number("OriginalStatusCode") != 400 {
		return "", fmt.Errorf("vLLM's 400: status %d (%v): %.300s", a.status, a.err, a.body)
	}
	return fmt.Sprintf("%d sessions (w1 %d, w2 %d) opened, each used 3 times where it is and closed", len(ids), at["w1"],
		at["w2"]), nil
}

// keeper is the worker that has a session.
func (s *scene) keeper(id string) (string, error) {
	for _, w := range s.workers {
		if _, err := os.Stat(s.setup.sessions(w.id) + "/" + id); err == nil {
			return w.id, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("no worker has session %q", id)
}
