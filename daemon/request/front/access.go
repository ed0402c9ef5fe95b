package front

import (
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/jsonline"
	"github.com/warmpath/warmpath/daemon/transport/spool"
)

// accessLog writes one JSON line a request, for an operator to grep. A line never holds a prompt, an answer, a query
// or a key, and at most gate.MaxText bytes of a client's own text. Lines that server.explain_log picks also have the
// header fields that the strategy may see. Its zero value writes nothing.
//
// Lines go through a [spool.Spool]: no request waits for a pipe without a reader or for a disk that hangs
// (TestNobodyReadsTheAccessLog).
type accessLog struct {
	lost atomic.Uint64 // lines

	mu sync.Mutex // guards to
	to *spool.Spool

	path   string // this and the next are used by one reload at a time
	writer *accessWriter
}

// accessWriter is the file's end of the queue. file belongs to the queue's goroutine.
type accessWriter struct {
	lines *spool.Spool
	path  string
	log   *slog.Logger // of the process
	file  *logFile
	next  atomic.Pointer[logFile] // takes file's place at the next line
	lost  *atomic.Uint64
}

// open makes path the log; a file is opened anew each time. "" = none. It reports lines that cannot be written to log.
// A reload that names another file waits lastLines for the lines before, if these cannot be written either.
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
	w := &accessWriter{path: path, log: log, file: f, lost: &a.lost}
	batch, delay := 0, time.Duration(0)
	if f.path != "" { // the process's own streams are the log's too: see package spool
		batch, delay = linesAtOnce, linesWait
	}
	w.lines = spool.New(spool.Config{To: w, Batch: batch, Delay: delay})
	a.replace(w, path, log)
	return nil
}

// replace sends the lines from here on to w, and ends the last writer, which may be stuck.
func (a *accessLog) replace(w *accessWriter, path string, log *slog.Logger) {
	a.mu.Lock()
	a.to = nil
	if w != nil {
		a.to = w.lines
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

// linesAtOnce is how many bytes of lines one write takes. Such a call takes longer than 20 us. The runtime's monitor
// then takes the processor away from it, and looks every 20 us for a millisecond, each look a context switch. So there
// are few large writes. Beyond this size the lines leave a core's own cache before they are written.
const linesAtOnce = 256 << 10

// linesWait is how long lines wait for others to share a write: a person who reads along does not see it.
const linesWait = 100 * time.Millisecond

// lastLines is how long the access log's last lines may take: a second is long for MaxBytes on any disk that works.
const lastLines = time.Second

// close writes the lines that wait, and ends the log.
func (a *accessLog) close(log *slog.Logger) { a.replace(nil, "", log) }

// Line writes lines to the file, or to the one that takes its place.
func (w *accessWriter) Line(lines []byte) {
	if f := w.next.Swap(nil); f != nil {
		w.file.close()
		f.succeed(w.file)
		w.file = f
	}
	_, _ = w.file.Write(lines) // never fails
	w.lost.Add(uint64(w.file.lately))
}

// Lost counts a line that is lost, and logs the first.
func (w *accessWriter) Lost(first bool) {
	w.lost.Add(1)
	if first {
		w.log.Warn("the access log is stuck: its lines are lost until it moves; read the pipe, mend the disk or "+
			"correct server.access_log", "file", w.path)
	}
}

// Again logs how many lines were lost.
func (w *accessWriter) Again(lost int) {
	w.log.Warn("the access log moves again; lines were lost while it was stuck", "file", w.path, "lost_lines", lost)
}

// End closes the files.
func (w *accessWriter) End() {
	w.file.close()
	if f := w.next.Swap(nil); f != nil {
		f.close()
	}
}

// ended is what a line has beside the request itself.
type ended struct {
	at     time.Time
	took   time.Duration
	sent   int64         // bytes of the answer's body
	slower time.Duration // requests that take longer have their candidates in the line; 0 = none
}

// log queues the line of a request that has ended.
func (a *accessLog) log(in *message.Inbound, e ended) {
	a.mu.Lock()
	open := a.to != nil
	a.mu.Unlock()
	if !open {
		return
	}
	l := lines.Get().(*jsonline.Line)
	*l = (*l)[:0]
	appendLine(l, in, e)
	a.mu.Lock()
	if a.to != nil { // and not one that has been closed meanwhile: it would count the line as lost
		_, _ = a.to.Write(*l) // never fails
	}
	a.mu.Unlock()
	if cap(*l) <= longLine {
		lines.Put(l)
	}
}

// lines reuses the memory of lines, except for those over longLine.
var lines = sync.Pool{New: func() any { l := make(jsonline.Line, 0, 2048); return &l }}

const longLine = 64 << 10

// appendSplit appends the prefill at a worker of its own, if there was one.
func appendSplit(l *jsonline.Line, seen *message.Seen) {
	if pair := seen.PairName(); pair != "" {
		l.Text("pair", pair)
	}
	if s := seen.Split; s != nil {
		l.Text("prefiller", s.Prefiller)
		l.Text("prefill", s.Result)
		if s.Why != "" {
			l.Text("prefill_why", s.Why)
		}
		l.Number("prefill_seconds", s.Took.Seconds())
	}
}

// appendTried appends the workers that gave the client no answer, and why not.
func appendTried(l *jsonline.Line, seen *message.Seen) {
	if len(seen.Attempts) == 0 {
		return
	}
	l.OpenList("tried")
	for i := range seen.Attempts {
		a := &seen.Attempts[i]
		l.Open("")
		l.Text("worker", a.Worker)
		l.Text("reason", a.Reason)
		l.Number("after_seconds", a.After.Seconds())
		l.Close()
	}
	l.CloseList()
}

// appendModel appends the model, and the alias for it that the client sent.
func appendModel(l *jsonline.Line, seen *message.Seen) {
	l.Text("model", gate.Cut(seen.Model))
	if seen.Aliased != nil {
		l.Text("alias", seen.Alias)
	}
}

// appendIdentity appends the session that the request names, as fingerprints: ids are secrets.
func appendIdentity(l *jsonline.Line, seen *message.Seen) {
	if seen.Named == nil {
		return
	}
	l.Text("identity", seen.Identity)
	l.Text("named_by", seen.NamedBy)
	l.Int("turn", int64(seen.Turn))
	if seen.Parent != "" {
		l.Text("parent", seen.Parent)
	}
}

// appendLine appends the line of a request, with its end.
func appendLine(l *jsonline.Line, in *message.Inbound, e ended) {
	seen, took := &in.Seen, e.took
	key := ""
	if in.Caller != nil {
		key = in.Caller.Name
	}
	l.Open("")
	l.Time("time", e.at)
	l.Text("level", "INFO")
	l.Text("msg", "request")
	l.Text("id", gate.Cut(in.ID))
	l.Text("client", in.Remote)
	l.Text("key", key)
	l.Text("method", gate.Cut(in.Method))
	l.Text("path", gate.Cut(in.Path))
	l.Int("status", int64(seen.Status))
	l.Int("bytes", e.sent)
	l.Number("seconds", took.Seconds())
	if seen.Stream || seen.FirstByte == 0 { // the first byte of an answer in one piece is its last
		l.Number("ttft_seconds", seen.FirstByte.Seconds())
	}
	l.Bool("stream", seen.Stream)
	l.Text("endpoint", seen.Endpoint)
	appendModel(l, seen)
	l.Text("pool", seen.Pool)
	l.Text("worker", seen.Worker)
	if weights := seen.MadeWith(); weights != "" {
		l.Text("weights", weights)
	}
	l.Text("strategy", seen.Strategy)
	l.Text("reason", seen.Reason)
	l.Text("fallback", seen.Fallback)
	if left := seen.Filtered(); left != "" {
		l.Text("filters", left)
	}
	if said := seen.Wishes(); said != "" {
		l.Text("cache", said)
	}
	l.Text("session", seen.Session)
	appendIdentity(l, seen)
	l.Int("matched_blocks", int64(seen.Matched))
	l.Int("blocks", int64(seen.PromptBlocks))
	l.Int("believed_tokens", int64(seen.Believed))
	if seen.Usage.Known {
		l.Int("prompt_tokens", int64(seen.Usage.Prompt))
	}
	if seen.Usage.CachedKnown {
		l.Int("cached_tokens", int64(seen.Usage.Cached))
	}
	l.Int("output_tokens", int64(seen.Usage.Output))
	l.Number("queue_seconds", seen.Queue.Seconds())
	if q := seen.Queued; q != nil {
		l.Int("priority", int64(q.Priority))
		l.Number("waited_seconds", q.Waited.Seconds())
		l.Int("waited_behind", int64(q.Behind))
	}
	appendSplit(l, seen)
	l.Int("retries", int64(seen.Retries))
	if seen.Comments > 0 {
		l.Int("keepalives", int64(seen.Comments))
	}
	l.Text("end", seen.End)
	appendTried(l, seen)
	if seen.Trace != "" {
		l.Text("trace_id", seen.Trace)
	}
	if seen.Others != nil { // the shadows that chose another worker
		if text := seen.Others.String(); text != "" {
			l.Text("shadow", text)
		}
	}
	if (seen.Logged || e.slower > 0 && took > e.slower) && len(seen.Candidates) > 0 { // server.explain_log picks it
		appendChoice(l, seen)
	}
	l.Close()
	*l = append(*l, '\n')
}

// appendChoice appends what the strategy chose from, and what it could ask for beside that.
func appendChoice(l *jsonline.Line, seen *message.Seen) {
	l.Text("module_sha256", seen.Module)
	l.JSON("candidates", seen.CandidatesJSON())
	seen.AppendFrame(l, "packed_frame")
	o := seen.Offered
	if o == nil {
		return
	}
	if text, err := json.Marshal(o.Labels); err == nil && len(o.Labels) > 0 {
		l.JSON("labels", text)
	}
	if text, err := json.Marshal(o.Headers); err == nil && len(o.Headers) > 0 {
		l.JSON("headers", text)
	}
}
