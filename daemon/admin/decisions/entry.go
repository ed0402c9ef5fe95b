package decisions

import (
	"slices"
	"time"
	"unsafe"

	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/record"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// keptRequest is one request as the ring keeps it. Its memory is used again.
type keptRequest struct {
	Decision // without candidates and frame, which Explain makes of the sketch
	sketch   route.Sketch
	change   uint64           // of the ring, when the entry was last written
	place    int              // in Ring.open, while it is open
	own      int              // bytes of the texts that are copies
	waits    journal.Position // in a queue; nil = it does not wait
}

// beginWait makes e that of a request that waits, as begin does.
func (e *keptRequest) beginWait(in *message.Inbound, c *route.Choice, p journal.Position) {
	e.begin(in, c, time.Now())
	e.waits, e.Worker, e.Believed = p, "", 0
}

// begin makes e that of a request whose answer has not begun, decided on as c says; c is nil if nothing was decided.
func (e *keptRequest) begin(in *message.Inbound, c *route.Choice, at time.Time) {
	s := &in.Seen
	e.Decision = Decision{Record: s.Bare(), At: at.Round(0), Client: in.Remote, Method: in.Method, Path: in.Path,
		Open: true}
	if in.Caller != nil {
		e.Key = in.Caller.Name
	}
	e.ID = in.ID
	if c != nil {
		e.Module, e.Reason = c.Module(), c.Reason()
		e.sketch.Take(c)
	} else {
		e.sketch.Clear()
	}
	e.copyTexts()
	// What is known at the end. Until then it is at the worker that came first, if none has failed it.
	e.waits = nil
	e.Live, e.Matched, e.Usage, e.FirstByte, e.Total = false, 0, record.Usage{}, 0, 0
	held := uint32(0)
	e.Worker, held = e.sketch.First()
	e.Believed = int(float32(held) * e.BlockTokens)
}

// copyTexts replaces the texts of the request by copies, all in one piece of memory. It copies at most gate.MaxText
// bytes of the client's own words.
func (e *keptRequest) copyTexts() {
	e.ID, e.Model, e.Method, e.Path = gate.Cut(e.ID), gate.Cut(e.Model), gate.Cut(e.Method), gate.Cut(e.Path)
	texts := [...]*string{&e.ID, &e.Model, &e.Method, &e.Path, &e.Client, &e.Trace, &e.Reason}
	var memory [512]byte
	all := memory[:0]
	for _, t := range texts {
		all = append(all, *t...)
	}
	rest := string(all)
	e.own = len(rest)
	for _, t := range texts {
		*t, rest = rest[:len(*t)], rest[len(*t):]
	}
}

// end writes what is known when the answer has ended.
func (e *keptRequest) end(in *message.Inbound, took time.Duration, sent int64) {
	s := &in.Seen
	e.waits = nil
	e.Open, e.Status, e.Stream, e.Retries, e.End = false, int(s.Status), s.Stream, int(s.Retries), s.End
	e.Bytes, e.Seconds = sent, took.Seconds()
	if s.Passed {
		e.Reason = s.Reason // a constant: it needs no copy
	}
	e.Worker, e.Live, e.Matched, e.Believed, e.Usage = s.Worker, s.Live, s.Matched, s.Believed, s.Usage
	e.FirstByte, e.Total, e.Queued, e.Aside, e.Split = s.FirstByte, s.Total, s.Queued, s.Aside, s.Split
	e.Attempts = slices.Clone(s.Attempts)
}

// size returns the bytes of memory.
func (e *keptRequest) size() int {
	named := 0
	if n := e.Named; n != nil {
		named = int(unsafe.Sizeof(*n)) + len(n.Identity) + len(n.Parent)
	}
	if e.Aliased != nil {
		named += int(unsafe.Sizeof(*e.Aliased)) // the name is the configuration's
	}
	if e.Queued != nil {
		named += int(unsafe.Sizeof(*e.Queued))
	}
	if e.Aside != nil {
		named += int(unsafe.Sizeof(*e.Aside)) + len(e.Filtered()) + len(e.Wishes()) // without the worker's own id
		named += len(e.Hint)
	}
	if e.Split != nil {
		named += int(unsafe.Sizeof(*e.Split))
	}
	return int(unsafe.Sizeof(*e)) + named + e.own + e.sketch.Size() + len(e.Attempts)*int(unsafe.Sizeof(record.Attempt{}))
}

// decision returns the entry in words. The frame, which is for machines, is in it only if it is wanted.
func (e *keptRequest) decision(frame bool) Decision {
	d, now := e.Decision, time.Now()
	if e.Open {
		d.Seconds = max(0, now.Sub(e.At).Seconds())
	}
	if e.sketch.Known() {
		e.sketch.Explain(&d.Record)
	}
	if e.waits != nil && e.Queued != nil {
		q := *e.Queued
		q.Waits, q.Waited = true, q.Waited+e.waits.Waited(now)
		if frame { // it costs a walk through the queue
			q.Behind = e.waits.Behind()
		}
		d.Queued = &q
	}
	if !frame {
		d.Frame = nil
	}
	return d
}
