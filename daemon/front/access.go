package front

import (
	"context"
	"encoding/base64"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/exchange"
	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/spool"
)

// accessLog writes one JSON line a request: what an operator greps at night. A line never holds a prompt, an answer,
// a query or a key, and of what a client names no more than gate.MaxText bytes. Its zero value writes nothing.
//
// Lines go through a [spool.Spool]: no request waits for a pipe that nobody reads or for a disk that hangs
// (TestNobodyReadsTheAccessLog).
type accessLog struct {
	lost atomic.Uint64 // lines

	mu sync.Mutex // guards to
	to *slog.Logger

	path   string // this and the next are used by one reload at a time
	writer *accessWriter
}

// accessWriter is the file's end of the queue. file belongs to the queue's goroutine.
type accessWriter struct {
	lines *spool.Spool
	file  *logFile
	next  atomic.Pointer[logFile] // takes file's place at the next line
	lost  *atomic.Uint64
}

// open makes path the log; a file is opened anew each time. "" = none. Lines that cannot be written are reported to
// log. A reload that names another file waits lastLines for the lines before, if these cannot be written either.
func (a *accessLog) open(path string, log *slog.Logger) error {
	if path == "" {
		a.close(log)
		return nil
	}
	f, err := newLogFile(path, log)
	if err != nil {
		return err
	}
	if a.writer != nil && path == a.path {
		if unused := a.writer.next.Swap(f); unused != nil {
			unused.close()
		}
		return nil
	}
	w := &accessWriter{file: f, lost: &a.lost}
	w.lines = spool.New(spool.Config{
		Line: w.write,
		End:  w.end,
		Lost: func(first bool) {
			a.lost.Add(1)
			if first {
				log.Warn("the access log is stuck: its lines are lost until it moves; read the pipe, mend the disk or "+
					"correct server.access_log", "file", path)
			}
		},
		Again: func(lost int) {
			log.Warn("the access log moves again; lines were lost while it was stuck", "file", path, "lost_lines", lost)
		},
	})
	a.replace(w, path, log)
	return nil
}

// replace sends the lines from here on to w, and ends the writer before, which may be stuck.
func (a *accessLog) replace(w *accessWriter, path string, log *slog.Logger) {
	a.mu.Lock()
	a.to = nil
	if w != nil {
		a.to = slog.New(slog.NewJSONHandler(w.lines, nil))
	}
	a.mu.Unlock()
	before, was := a.writer, a.path
	a.writer = w
	a.path = path
	if before == nil {
		return
	}
	if left, lost := before.lines.Close(lastLines); left+lost > 0 {
		a.lost.Add(uint64(left))
		log.Warn("the access log was stuck at its end; its last lines are lost", "file", was, "lost_lines", left+lost)
	}
}

// lastLines is how long the access log's last lines may take: a second is long for MaxBytes on any disk that works.
const lastLines = time.Second

// close writes the lines that wait, and ends the log.
func (a *accessLog) close(log *slog.Logger) { a.replace(nil, "", log) }

// write writes a line to the file, or to the one that takes its place.
func (w *accessWriter) write(line []byte) {
	if f := w.next.Swap(nil); f != nil {
		w.file.close()
		w.file = f
	}
	_, _ = w.file.Write(line) // never fails
	if w.file.failed != nil {
		w.lost.Add(1)
	}
}

func (w *accessWriter) end() {
	w.file.close()
	if f := w.next.Swap(nil); f != nil {
		f.close()
	}
}

// ended is what a line says beside the request itself.
type ended struct {
	arrived time.Time
	sent    int64         // bytes of the answer's body
	slower  time.Duration // requests that take longer have their candidates in the line; 0 = none
}

// log queues the line of a request that has ended.
func (a *accessLog) log(in *exchange.Inbound, e ended) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.to == nil {
		return
	}
	seen, took := &in.Seen, time.Since(e.arrived)
	key := ""
	if in.Caller != nil {
		key = in.Caller.Name
	}
	a.to.LogAttrs(context.Background(), slog.LevelInfo, "request",
		slog.String("id", gate.Cut(in.ID)),
		slog.String("client", in.Remote),
		slog.String("key", key),
		slog.String("method", gate.Cut(in.Method)),
		slog.String("path", gate.Cut(in.Path)),
		slog.Int("status", seen.Status),
		slog.Int64("bytes", e.sent),
		slog.Float64("seconds", seconds(took)),
		slog.Float64("ttft_seconds", seconds(seen.FirstByte)),
		slog.Bool("stream", seen.Stream),
		slog.String("endpoint", seen.Endpoint), slog.String("model", gate.Cut(seen.Model)),
		slog.String("pool", seen.Pool),
		slog.String("worker", seen.Worker),
		slog.String("strategy", seen.Strategy),
		slog.String("reason", seen.Reason),
		slog.String("fallback", seen.Fallback),
		slog.String("session", seen.Session),
		slog.Int("matched_blocks", seen.Matched),
		slog.Int("blocks", seen.PromptBlocks),
		slog.Int("believed_tokens", seen.Believed),
		known("prompt_tokens", seen.Usage.Prompt, seen.Usage.Known),
		known("cached_tokens", seen.Usage.Cached, seen.Usage.CachedKnown),
		slog.Int("output_tokens", seen.Usage.Output),
		slog.Float64("queue_seconds", seconds(seen.Queue)),
		slog.Int("retries", seen.Retries),
		slog.String("end", seen.End),
		named("trace_id", seen.Trace),
		others(seen),
		candidates(seen, e.slower > 0 && took > e.slower))
}

// others names the shadows that chose another worker, if any did.
func others(seen *exchange.Seen) slog.Attr {
	if seen.Others == nil {
		return slog.Attr{}
	}
	if text := seen.Others.String(); text != "" {
		return slog.String("shadow", text)
	}
	return slog.Attr{}
}

// named leaves a text out of the line that nobody has set.
func named(key, text string) slog.Attr {
	if text == "" {
		return slog.Attr{}
	}
	return slog.String(key, text)
}

// known leaves a count out of the line where the worker has not given it.
func known(key string, n int, ok bool) slog.Attr {
	if !ok {
		return slog.Attr{}
	}
	return slog.Int(key, n)
}

// candidates are in the line if server.explain_log picks the request.
func candidates(seen *exchange.Seen, slow bool) slog.Attr {
	if !seen.Logged && !slow || len(seen.Candidates) == 0 {
		return slog.Attr{}
	}
	return slog.Group("", slog.String("module_sha256", seen.Module), slog.Any("candidates", seen.Candidates),
		slog.String("frame", base64.StdEncoding.EncodeToString(seen.Frame)))
}

// seconds rounds to whole microseconds, so that a line stays short.
func seconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1e6 }
