package front

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// lineOf returns the line of the access log that a request leaves.
func lineOf(t *testing.T, in *message.Inbound, e ended) map[string]any {
	t.Helper()
	var a accessLog
	path := filepath.Join(t.TempDir(), "access.log")
	a.log(in, e) // nothing is open yet
	if err := a.open(path, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	a.log(in, e)
	a.close(slog.New(slog.DiscardHandler))
	a.log(in, e) // nothing is open any more
	text, err := os.ReadFile(path)
	if err != nil || strings.Count(string(text), "\n") != 1 {
		t.Fatalf("the log holds %q, %v; want one line", text, err)
	}
	line := map[string]any{}
	if err := json.Unmarshal(text, &line); err != nil {
		t.Fatal(err)
	}
	return line
}

func TestLineOfARequest(t *testing.T) {
	in := &message.Inbound{ID: "r1", Remote: "10.0.0.1", Method: "POST", Path: "/v1/" + strings.Repeat("x", 9000),
		Query: "secret=1", Body: []byte("my prompt"), Caller: &gate.Caller{Name: "team"}}
	in.Seen.Status = 200
	in.Seen.Pool = "p"
	in.Seen.Worker = "w"
	in.Seen.Retries = 1
	in.Seen.FirstByte = 1500 * time.Microsecond
	in.Seen.Stream = true
	in.Seen.Usage.Prompt = 7
	in.Seen.Usage.Known = true
	line := lineOf(t, in, ended{at: time.Now(), took: time.Second, sent: 42})
	for key, want := range map[string]any{"msg": "request", "id": "r1", "client": "10.0.0.1", "key": "team", "method": "POST",
		"status": 200.0, "bytes": 42.0, "ttft_seconds": 0.0015, "pool": "p", "worker": "w", "retries": 1.0,
		"prompt_tokens": 7.0, "end": ""} {
		if line[key] != want {
			t.Errorf("%s is %v; want %v", key, line[key], want)
		}
	}
	for _, key := range []string{"cached_tokens", "candidates", "query"} {
		if v, ok := line[key]; ok {
			t.Errorf("%s is %v; want none", key, v)
		}
	}
	if path := line["path"].(string); len(path) > gate.MaxText+10 {
		t.Errorf("a path of %d bytes stands in the log", len(path))
	}
	if s := line["seconds"].(float64); s < 1 || s > 60 {
		t.Errorf("it took %v s", s)
	}
}

// The first byte of an answer in one piece comes with its last, which says nothing of the first token.
func TestWholeAnswersHaveNoFirstToken(t *testing.T) {
	in := &message.Inbound{}
	in.Seen.FirstByte = time.Second
	if line := lineOf(t, in, ended{at: time.Now(), took: time.Second}); line["ttft_seconds"] != nil {
		t.Errorf("ttft_seconds is %v; want none", line["ttft_seconds"])
	}
}

func TestCandidatesInTheLine(t *testing.T) {
	f := func(logged bool, slower, took time.Duration, candidates int, want bool) {
		t.Helper()
		in := &message.Inbound{}
		in.Seen.Logged = logged
		in.Seen.Candidates = make([]record.Candidate, candidates)
		line := lineOf(t, in, ended{at: time.Now(), took: took, slower: slower})
		if list, got := line["candidates"].([]any); got != want || got && len(list) != candidates {
			t.Errorf("logged %v, slower %v, took %v: candidates %v; want %v", logged, slower, took, list, want)
		}
	}
	f(false, 0, time.Minute, 2, false)
	f(true, 0, 0, 2, true)
	f(true, 0, 0, 0, false) // it was answered before any was looked at
	f(false, 2*time.Second, 0, 2, false)
	f(false, 2*time.Second, time.Minute, 2, true)
}
