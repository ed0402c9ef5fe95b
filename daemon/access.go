package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// accessLog writes one JSON line a request: what an operator greps at night. It never holds a prompt, an answer, a query or
// a key. Its zero value writes nothing.
type accessLog struct {
	mu   sync.Mutex // guards all below
	path string
	file *os.File
	to   *slog.Logger
}

// open makes path the log; a file is opened anew each time, so that a reload follows a rotation. "" = none.
func (a *accessLog) open(path string) error {
	var f *os.File
	switch path {
	case "":
	case "stdout":
		f = os.Stdout
	case "stderr":
		f = os.Stderr
	default:
		var err error
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640); err != nil {
			return fmt.Errorf("daemon: server.access_log cannot be written; correct the path or its rights: %w", err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeFile()
	a.path, a.file, a.to = path, f, nil
	if f != nil {
		a.to = slog.New(slog.NewJSONHandler(f, nil))
	}
	return nil
}

func (a *accessLog) closeFile() {
	if a.file != nil && a.file != os.Stdout && a.file != os.Stderr {
		a.file.Close()
	}
	a.file = nil
}

func (a *accessLog) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closeFile()
	a.to = nil
}

// log writes the line of a request that has ended.
func (a *accessLog) log(v *visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.to == nil {
		return
	}
	in, seen := &v.in, &v.in.Seen
	key := ""
	if in.Caller != nil {
		key = in.Caller.Name
	}
	a.to.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("id", in.ID), slog.String("client", in.Remote), slog.String("key", key),
		slog.String("method", in.Method), slog.String("path", in.Path), slog.Int("status", seen.Status),
		slog.Int64("bytes", v.sent), slog.Float64("seconds", seconds(time.Since(v.arrived))),
		slog.Float64("ttft_seconds", seconds(seen.First)), slog.String("model", seen.Model), slog.String("pool", seen.Pool),
		slog.String("worker", seen.Worker), slog.String("strategy", seen.Strategy), slog.String("fallback", seen.Fallback),
		slog.Int("matched_blocks", seen.Matched), slog.Int("blocks", seen.Blocks), slog.Int("output_tokens", seen.Tokens),
		slog.Int("retries", seen.Retries), slog.String("end", seen.End))
}

// seconds are whole microseconds, so that a line stays short.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
