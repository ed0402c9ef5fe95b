package decisions

import (
	"time"
)

// Query selects decisions. Empty fields select all.
type Query struct {
	Pool, Worker, Model, Key string
	Slower                   time.Duration // than this, or still open for longer
	Failed                   bool          // only those that did not end well: a status from 400 on, or a broken end
	Limit                    int           // at most so many, the last ones
}

// fits reports whether the query selects the entry.
func (q *Query) fits(e *entry, now time.Time) bool {
	s := &e.seen
	took := time.Duration(e.seconds * float64(time.Second))
	if e.open {
		took = now.Sub(e.at)
	}
	return (q.Pool == "" || q.Pool == s.Pool) && (q.Worker == "" || q.Worker == s.Worker) &&
		(q.Model == "" || q.Model == s.Model) && (q.Key == "" || q.Key == e.key) &&
		took >= q.Slower && (!q.Failed || s.Status >= 400 || !e.open && s.End != "")
}

// Latest returns the last decisions that q selects, the newest first.
func (r *Ring) Latest(q Query) (list []Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for i := r.count - 1; i >= 0 && len(list) < q.Limit; i-- {
		if e := r.at(i); q.fits(e, now) {
			list = append(list, e.decision(false))
		}
	}
	return list
}

// Since returns the decisions that q selects and that are new, or have ended, since the change of that number; the
// newest first. It returns the number of the last change too. Beyond q.Limit the older ones are left out, and counted.
func (r *Ring) Since(change uint64, q Query) (list []Decision, last uint64, left int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if change == r.changes {
		return nil, change, 0
	}
	now := time.Now()
	for i := r.count - 1; i >= 0; i-- {
		e := r.at(i)
		if e.change <= change || !q.fits(e, now) {
			continue
		}
		if len(list) == q.Limit {
			left++
			continue
		}
		list = append(list, e.decision(false))
	}
	return list, r.changes, left
}

// Find returns the last request of that id that is kept.
func (r *Ring) Find(id string) (d Decision, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := r.count - 1; i >= 0; i-- {
		if e := r.at(i); e.seen.ID == id {
			return e.decision(true), true
		}
	}
	return d, false
}

// Stats says what the ring holds.
type Stats struct {
	Kept   int       // requests
	Bytes  int       // of memory
	Oldest time.Time // zero if there is none
}

// Stats returns what the ring holds now.
func (r *Ring) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Kept: r.count, Bytes: r.bytes}
	if r.count > 0 {
		s.Oldest = r.at(0).at
	}
	return s
}

// decision puts an entry into words. The frame, which is for machines, is in it only if it is wanted.
func (e *entry) decision(frame bool) Decision {
	d := Decision{Record: e.seen.Record, Number: e.number, At: e.at, Client: e.client, Key: e.key, Method: e.method,
		Path: e.path, Open: e.open, Status: e.seen.Status, Stream: e.seen.Stream, Retries: e.seen.Retries, End: e.seen.End,
		Bytes: e.sent, Seconds: e.seconds}
	if e.sketch.Known() {
		e.sketch.Explain(&d.Record)
	}
	if !frame {
		d.Frame = nil
	}
	return d
}
