package sagemaker

import (
	"container/list"
	"context"
	"sync"
	"time"
)

// Result is an answer that can be given again.
type Result struct {
	OK     bool // the session was opened: only this is kept
	Status int
	Header [][2]string
	Body   []byte // not to be changed by anyone who gets the result
}

func (r *Result) size() int {
	n := len(r.Body)
	for _, h := range r.Header {
		n += len(h[0]) + len(h[1])
	}
	return n
}

const (
	keepResult  = 60 * time.Second // after its end; SDKs send the next attempt within seconds of the last one's
	maxResults  = 100_000
	maxKept     = 64 << 20 // bytes of all kept results
	maxOneKept  = 4 << 20  // of one; a larger one is not kept
	resultExtra = 256      // an entry's own memory, about
)

// Opens makes opening a session idempotent: the attempts of one call, which an SDK repeats when an answer is late,
// open one session. It is per process; an attempt that comes in at a second router opens a second session, which ends
// by itself. The zero value is ready; it is safe for concurrent use.
type Opens struct {
	mu    sync.Mutex // guards all below and the entries
	byID  map[string]*entry
	done  list.List // of *entry with a result, oldest first
	bytes int
}

type entry struct {
	id     string
	ended  chan struct{} // closed when the attempt has ended
	result Result
	at     time.Time
	place  *list.Element // in done; nil while the attempt runs, or after it failed
}

// Do runs open, or returns the result of an attempt with the same id that opened the session in the last minute. Of
// attempts with the same id one runs at a time; when it fails, was cancelled or panicked, the next runs. ctx bounds
// the wait for another attempt, not open: an error is ctx's. id is the caller's name and Call.InvocationID, since
// clients could make up each other's; "" means that nothing is known of other attempts.
func (o *Opens) Do(ctx context.Context, id string, open func() Result) (r Result, replayed bool, err error) {
	if id == "" {
		return open(), false, nil
	}
	for {
		e, mine := o.enter(id)
		if mine {
			return o.run(e, open), false, nil
		}
		select {
		case <-e.ended:
		case <-ctx.Done():
			return Result{}, false, context.Cause(ctx)
		}
		if r, ok := o.resultOf(e); ok {
			return r, true, nil
		}
	}
}

// enter returns the entry of an id, and whether the caller is to fill it.
func (o *Opens) enter(id string) (e *entry, mine bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forget(time.Now())
	if e, ok := o.byID[id]; ok {
		return e, false
	}
	if o.byID == nil {
		o.byID = map[string]*entry{}
	}
	e = &entry{id: id, ended: make(chan struct{})}
	o.byID[id] = e
	return e, true
}

// run fills the entry, or removes it.
func (o *Opens) run(e *entry, open func() Result) (r Result) {
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		defer close(e.ended)
		size := r.size() + resultExtra
		if !r.OK || size > maxOneKept {
			delete(o.byID, e.id)
			return
		}
		e.result = r
		e.at = time.Now()
		e.place = o.done.PushBack(e)
		o.bytes += size
		for o.done.Len() > maxResults || o.bytes > maxKept {
			o.drop(o.done.Front())
		}
	}()
	return open()
}

// resultOf returns what an attempt that has ended left, if it succeeded.
func (o *Opens) resultOf(e *entry) (Result, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.place == nil {
		return Result{}, false
	}
	return e.result, true
}

// forget drops what is too old. The caller holds mu.
func (o *Opens) forget(now time.Time) {
	for f := o.done.Front(); f != nil && now.Sub(f.Value.(*entry).at) >= keepResult; f = o.done.Front() {
		o.drop(f)
	}
}

// drop removes a result. Calls that already wait for it still get it. The caller holds mu.
func (o *Opens) drop(f *list.Element) {
	e := f.Value.(*entry)
	o.done.Remove(f)
	delete(o.byID, e.id)
	o.bytes -= e.result.size() + resultExtra
}
