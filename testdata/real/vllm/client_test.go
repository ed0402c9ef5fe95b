package main

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// recorded reads a recording as the client would have got it.
func recorded(t *testing.T, file string) *answer {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		return &answer{err: err}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return &answer{status: resp.StatusCode, header: resp.Header, body: body, err: err}
}

// What a real worker sends while it is stopped must never count as an answer.
func TestFaultSeesHiddenFailures(t *testing.T) {
	files, err := filepath.Glob("recordings/*/*.http")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	whole := []string{"health.http", "ping.http", "load.http", "v1-models.http"}
	for _, file := range files {
		a := recorded(t, file)
		if good := slices.Contains(whole, filepath.Base(file)); good != (a.fault() == nil) {
			t.Errorf("%s: fault says %v", file, a.fault())
		}
	}
}

func TestFaultTakesWholeStreams(t *testing.T) {
	events := http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}
	for _, file := range []string{"../../vllm/chat-stream.sse", "../../vllm/completion-stream.sse"} {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		a := &answer{status: http.StatusOK, header: events, body: body}
		if err := a.fault(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if got := a.number("usage", "prompt_tokens"); got <= 0 {
			t.Errorf("%s: %d prompt tokens", file, got)
		}
		a.body = body[:len(body)/2]
		if a.fault() == nil {
			t.Errorf("half of %s passes for whole", file)
		}
	}
}
