package decisions

import (
	"cmp"
	"runtime"
	"slices"
	"time"

	"github.com/warmpath/warmpath/daemon/request/message"
)

// Query selects decisions. Empty fields select all.
type Query struct {
	Pool, Worker, Model, Key string
	Slower                   time.Duration // than this, or still open for longer
	Open                     bool          // only those whose answer has not ended
	Failed                   bool          // only those that did not end well: a status from 400 on, or a broken end
	Limit                    int           // at most so many, the last ones
}

// fits reports whether the query selects the entry.
func (q *Query) fits(e *keptRequest, now time.Time) bool {
	took := time.Duration(e.Seconds * float64(time.Second))
	if e.Open {
		took = now.Sub(e.At)
	}
	return (q.Pool == "" || q.Pool == e.Pool) && (q.Worker == "" || q.Worker == e.Worker) &&
		(q.Model == "" || q.Model == e.Model) && (q.Key == "" || q.Key == e.Key) &&
		took >= q.Slower && (!q.Open || e.Open) && (!q.Failed || e.Status >= 400 || !e.Open && e.End != "" &&
		e.End != message.EndContinued)
}

// Latest returns the last decisions that q selects, the newest first.
func (r *Ring) Latest(q Query) (list []Decision) {
	v := view{Query: q, now: time.Now()}
	r.walk(&v)
	slices.SortFunc(v.list, func(a, b Decision) int { return cmp.Compare(b.Number, a.Number) })
	return v.list[:min(len(v.list), q.Limit)]
}

// Since returns the decisions that q selects and that are new, or have ended, since the change of that number; the
// newest first. It returns the number of the last change too. Beyond q.Limit the older ones are left out, and counted.
func (r *Ring) Since(change uint64, q Query) (list []Decision, last uint64, left int) {
	r.mu.Lock()
	last = r.changes
	r.mu.Unlock()
	if change == last {
		return nil, change, 0
	}
	v := view{Query: q, now: time.Now(), since: change, count: true}
	r.walk(&v)
	slices.SortFunc(v.list, func(a, b Decision) int { return cmp.Compare(b.Number, a.Number) })
	n := min(len(v.list), q.Limit)
	return v.list[:n], last, v.left + len(v.list) - n
}

// Find returns the last request of that id that is kept.
func (r *Ring) Find(id string) (d Decision, ok bool) {
	v := view{Query: Query{Limit: 1}, id: id, frame: true}
	r.walk(&v)
	for i := range v.list {
		if !ok || v.list[i].Number > d.Number {
			d, ok = v.list[i], true
		}
	}
	return d, ok
}

// view is one look at the kept requests.
type view struct {
	Query
	now   time.Time
	since uint64 // only what has changed after it
	id    string // only this; "" = all
	frame bool   // is wanted
	count bool   // of those that fit, for which there is no room, is wanted

	list []Decision // those of the open requests that fit, and Limit of the others
	left int        // of the others, for which there was no room
}

// atOnce is how many requests a look reads before it lets go of the lock: requests wait for it.
const atOnce = 256

// walk visits the open records, and then those that have ended, the newest first.
func (r *Ring) walk(v *view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.open {
		if e.change > v.since && v.wants(e) {
			v.list = append(v.list, e.decision(v.frame))
		}
	}
	taken := 0
	next := r.removed + uint64(len(r.ended)) // the number of the one after the newest
	for looked := 1; next > r.removed; looked++ {
		next--
		e := r.ended[next-r.removed]
		if e.change <= v.since || taken == v.Limit && !v.count {
			return
		}
		switch {
		case !v.wants(e):
		case taken == v.Limit:
			v.left++
		default:
			taken++
			v.list = append(v.list, e.decision(v.frame))
		}
		if looked%atOnce == 0 {
			r.mu.Unlock()
			runtime.Gosched()
			r.mu.Lock()
		}
	}
}

// wants reports whether the entry is looked for.
func (v *view) wants(e *keptRequest) bool {
	if v.id != "" {
		return v.id == e.ID
	}
	return v.fits(e, v.now)
}

// Stats is what the ring holds.
type Stats struct {
	Kept   int       `json:"kept"`  // requests
	Bytes  int       `json:"bytes"` // of memory
	Oldest time.Time `json:"oldest,omitzero"`
}

// Stats returns what the ring holds now.
func (r *Ring) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := Stats{Kept: len(r.open) + len(r.ended), Bytes: r.used}
	if len(r.ended) > 0 {
		s.Oldest = r.ended[0].At
	}
	for _, e := range r.open {
		if s.Oldest.IsZero() || e.At.Before(s.Oldest) {
			s.Oldest = e.At
		}
	}
	return s
}
