// Package spool keeps a log's lines until a goroutine of its own has written them. So a goroutine that logs never waits
// for a pipe that is not read, or for a disk that hangs: a log that requests wait for stops the router while /health
// answers 200.
//
// Lines stay whole and in order. Each is one write, as a pipe keeps a write shorter than 4 KiB apart from those of
// another stream of the process. A log with a file to itself sets Batch and Delay, and a loaded router writes dozens of
// lines by one call of the kernel. When MaxBytes wait, later lines are lost and counted.
//
// What lost: a deadline for each write, which pipes that the process inherits and files do not have; a channel of
// lines, which is an allocation a line, or needs a pool of buffers. The price is that a crash loses lines that wait for
// their turn: those of the last Delay, while the log is read.
package spool

import (
	"bytes"
	"sync"
	"time"
)

// MaxBytes bounds the lines that wait. An access log's line is 500 to 800 bytes: 4 MiB are 5,000 to 8,000, a second
// of more requests than one router serves. As many bytes again can be on their way out.
const MaxBytes = 4 << 20

// keptBytes is the largest buffer that stays between bursts.
const keptBytes = 1 << 20

// Config sets where lines go.
type Config struct {
	To    Log
	Batch int           // so many bytes of whole lines are written at once, if they wait; 0 = each line by itself
	Delay time.Duration // so long less than Batch waits for more; 0 = not at all
}

// Log is where lines go. The spool's own goroutine calls all of its methods but Lost.
type Log interface {
	// Line writes one line, for as long as that takes; with Batch several.
	Line(b []byte)
	// Lost means that a line is lost, the first since Again. Write calls it.
	Lost(first bool)
	// Again means that lines are taken again, after so many were lost.
	Again(lost int)
	// End comes after the last call of Line.
	End()
}

// Spool is an io.Writer of whole lines that never waits and never fails.
type Spool struct {
	c    Config
	done chan struct{} // closed when the goroutine has ended
	full chan struct{} // a Batch waits, or closed is set

	mu     sync.Mutex // guards all below
	more   *sync.Cond // wait is no longer empty, or closed is set
	wait   []byte     // lines
	left   int        // lines in wait and in what is being written
	lost   int        // lines since Again was called
	closed bool
}

// New starts a spool.
func New(c Config) *Spool {
	s := &Spool{c: c, done: make(chan struct{}), full: make(chan struct{}, 1)}
	s.more = sync.NewCond(&s.mu)
	go s.run()
	return s
}

// Write takes one line, or loses it. It keeps no part of line.
func (s *Spool) Write(line []byte) (int, error) {
	s.mu.Lock()
	full := s.closed || len(s.wait)+len(line) > MaxBytes
	first := full && s.lost == 0
	if full {
		s.lost++
	} else {
		before := len(s.wait)
		s.wait = append(s.wait, line...)
		s.left++
		if before == 0 {
			s.more.Signal()
		}
		if before < s.c.Batch && len(s.wait) >= s.c.Batch {
			s.endDelay()
		}
	}
	s.mu.Unlock()
	if full {
		s.c.To.Lost(first)
	}
	return len(line), nil
}

// endDelay ends the delay, so that the lines that wait are written at once.
func (s *Spool) endDelay() {
	select {
	case s.full <- struct{}{}:
	default: // the signal is there already
	}
}

// delay waits until a batch has come together, for the time of Delay at most. The caller holds s.mu.
func (s *Spool) delay() {
	select {
	case <-s.full: // of a batch that has been taken since
	default:
	}
	if s.closed || len(s.wait) >= s.c.Batch {
		return
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	late := time.NewTimer(s.c.Delay)
	defer late.Stop()
	select {
	case <-s.full:
	case <-late.C:
	}
}

func (s *Spool) run() {
	defer close(s.done)
	defer s.c.To.End()
	var lines []byte
	for {
		lost := 0
		lines, lost = s.swap(lines)
		if lost > 0 {
			s.c.To.Again(lost)
		}
		if len(lines) == 0 && lost == 0 {
			return
		}
		for rest := lines; len(rest) > 0; {
			n := s.together(rest)
			s.c.To.Line(rest[:n])
			s.mu.Lock()
			s.left -= bytes.Count(rest[:n], newline)
			s.mu.Unlock()
			rest = rest[n:]
		}
		if cap(lines) > keptBytes {
			lines = nil
		}
	}
}

var newline = []byte("\n")

// together returns the bytes of the lines that are written next: one line at least.
func (s *Spool) together(lines []byte) int {
	if len(lines) <= s.c.Batch {
		return len(lines)
	}
	if n := bytes.LastIndexByte(lines[:max(0, s.c.Batch)], '\n'); n >= 0 {
		return n + 1
	}
	if n := bytes.IndexByte(lines, '\n'); n >= 0 {
		return n + 1
	}
	return len(lines)
}

// swap waits for lines and exchanges the buffer for theirs. If lines were lost, it first returns how many, once the
// queue is half empty: a log that is read too slowly then reports one loss and not many. It returns neither when the
// spool is closed.
func (s *Spool) swap(buffer []byte) (lines []byte, lost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost > 0 && len(s.wait) < MaxBytes/2 {
		lost = s.lost
		s.lost = 0
		return nil, lost
	}
	for len(s.wait) == 0 && !s.closed {
		s.more.Wait()
	}
	if s.c.Delay > 0 {
		s.delay()
	}
	lines = s.wait
	s.wait = buffer[:0]
	return lines, 0
}

// Close waits up to limit until the lines are written. It returns how many were not, and how many were lost without a
// call of Again. Later lines are lost.
func (s *Spool) Close(limit time.Duration) (left, lost int) {
	s.mu.Lock()
	s.closed = true
	s.more.Signal()
	s.endDelay()
	s.mu.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-s.done:
	case <-late.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wait = nil // of a goroutine that may never come back
	return s.left, s.lost
}
