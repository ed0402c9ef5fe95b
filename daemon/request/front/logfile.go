package front

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"time"
)

// logFile is the file that the access log's lines go to. A line that cannot be written is lost, and no request waits
// for it. The operator's log has one line when lines begin to be lost, and one with their number when writing works
// again.
//
// It follows the name, as tail -F does: when the file or its folder was moved or deleted, the next line begins a new
// file. Otherwise lines would go to a deleted log for ever, and neither they nor their disk space would be visible.
//
// Not safe for concurrent use.
type logFile struct {
	path string // "" = one of the process's own streams, which has no name to go after
	file *os.File
	log  *slog.Logger

	checked time.Time // when path was last looked up
	gone    error     // why path could not be opened when it was last tried
	failed  error     // of the last write
	rest    []byte    // of a line of which only the beginning could be written; it goes before the next lines
	lost    int       // lines since lost lines were logged
	lately  int       // lines lost by the last write
}

// checkEvery bounds how often the name is looked up: a stat is 1 us.
const checkEvery = time.Second

func openLog(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o640)
}

// newLogFile opens the log: a file's name, stdout or stderr.
func newLogFile(path string, log *slog.Logger) (*logFile, error) {
	switch path {
	case "stdout":
		return &logFile{file: os.Stdout, log: log}, nil
	case "stderr":
		return &logFile{file: os.Stderr, log: log}, nil
	}
	f, err := openLog(path)
	if err != nil {
		return nil, fmt.Errorf("daemon: server.access_log cannot be written; correct the path or its rights: %w", err)
	}
	return &logFile{path: path, file: f, log: log, checked: time.Now(), rest: restOf(path)}, nil
}

// restOf returns a newline for a file that ends in the midst of a line, which a process that was killed has left there:
// the next line would be lost with it. Else it returns nothing.
func restOf(path string) []byte {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 { // opening a FIFO for reading would wait
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil || last[0] == '\n' {
		return nil
	}
	return []byte("\n")
}

// succeed takes the place of the log before, of the same name, which has not logged yet how many lines it has lost.
// That one may have written since l was opened.
func (l *logFile) succeed(before *logFile) {
	l.failed = before.failed
	l.lost = before.lost
	l.rest = restOf(l.path)
	if theirs, err := before.file.Stat(); err == nil && len(l.rest) > 0 && len(before.rest) > 0 && is(l.file, theirs) {
		l.rest = before.rest
	}
}

// is reports whether an open file is the one that was described.
func is(f *os.File, described os.FileInfo) bool {
	ours, err := f.Stat()
	return err == nil && os.SameFile(described, ours)
}

// Write writes whole lines. It never fails: package slog would keep the error to itself.
func (l *logFile) Write(lines []byte) (int, error) {
	if now := time.Now(); l.path != "" && now.Sub(l.checked) >= checkEvery {
		l.checked = now
		l.follow()
	}
	was := l.failed != nil
	n := 0
	if len(l.rest) > 0 {
		n, l.failed = l.file.Write(l.rest)
		l.rest = l.rest[n:]
		n = 0
	}
	if len(l.rest) == 0 {
		n, l.failed = l.file.Write(lines)
		if n > 0 && n < len(lines) && lines[n-1] != '\n' {
			end := bytes.IndexByte(lines[n:], '\n') + 1
			l.rest = bytes.Clone(lines[n : n+end])
			n += end
		}
	}
	l.lately = 0
	if l.failed != nil {
		l.lately = bytes.Count(lines[n:], []byte("\n"))
	}
	l.report(was)
	return len(lines), nil
}

// follow opens the file that has the name now, if it is another file.
func (l *logFile) follow() {
	if named, err := os.Stat(l.path); err == nil && is(l.file, named) {
		l.setGone(nil)
		return
	}
	f, err := openLog(l.path)
	if err == nil {
		l.file.Close()
		l.file = f
		l.rest = restOf(l.path)
	}
	l.setGone(err) // the file before takes the lines until the new one opens: after a move they are not lost
}

// setGone records why the name cannot be opened, nil if it can, and logs a change.
func (l *logFile) setGone(err error) {
	was := l.gone != nil
	l.gone = err
	switch {
	case err != nil && !was:
		l.log.Warn("the access log's file is gone and cannot be made anew; make its folder writable again",
			"file", l.path, "error", err)
	case err == nil && was:
		l.log.Info("the access log's file is there again", "file", l.path)
	}
}

// report logs that lines are lost, or that they are written again.
func (l *logFile) report(was bool) {
	l.lost += l.lately
	switch {
	case l.failed != nil && !was:
		l.log.Warn("the access log cannot be written: its lines are lost until it can; free the disk or correct "+
			"server.access_log", "file", l.file.Name(), "error", l.failed)
	case l.failed == nil && was:
		l.log.Info("the access log is written again", "file", l.file.Name(), "lost_lines", l.lost)
		l.lost = 0
	}
}

// close closes a file, and none of the process's own streams.
func (l *logFile) close() {
	if l.path != "" {
		l.file.Close()
	}
}
