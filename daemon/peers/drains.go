package peers

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/route"
)

const (
	// drainRecord is the kind of a session record that holds a drain. No session has that kind, so a router of an earlier
	// release ignores the record.
	drainRecord = 0xD0
	// drainLife is how long a record about a drain is valid. An older one, as in a replay, is out of date.
	drainLife = 30 * time.Second
	// handOverRecord is the kind of one that asks for the hand-over of a worker that drains, for the time of its life.
	handOverRecord = 0xD2
	// drainsEvery is the number of beats after which the drains in force are sent again, for routers that start.
	drainsEvery = 4
)

// drains tells all routers of a pool of an operator's drains, and of their ends. If two contradict each other, the
// later one holds. It is safe for concurrent use.
type drains struct {
	pool *route.Pool

	mu    sync.Mutex // guards known
	known map[string]mark
}

// mark is the newest call of Drain for a worker, here or at another router.
type mark struct {
	on bool
	at int64 // Unix time in ms; later than that of every mark before it, whatever the routers' clocks say
}

// take finds calls of Drain that were made here since the last call, and returns the records to send: these, or all
// that are in force.
func (d *drains) take(all bool, now time.Time) (records []Session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, on := range d.inForce(now) {
		before, known := d.known[id]
		changed := !known || before.on != on
		if changed {
			if d.known == nil {
				d.known = map[string]mark{}
			}
			d.known[id] = mark{on: on, at: max(now.UnixMilli(), before.at+1)}
		}
		if changed || all {
			records = append(records, Session{Kind: drainRecord, Key: id, Value: d.known[id].text(), Life: drainLife})
		}
	}
	return records
}

// inForce returns whether each worker drains that was ever drained, or put back, by an operator.
func (d *drains) inForce(now time.Time) map[string]bool {
	all := d.pool.Workers.Drains()
	if len(d.known) == 0 {
		return all
	}
	stats := d.pool.Workers.Stats(now)
	for id := range d.known {
		if _, told := all[id]; told {
			continue
		}
		at := slices.IndexFunc(stats, func(s worker.Stats) bool { return s.ID == id || s.Endpoint == id })
		if at < 0 {
			delete(d.known, id) // the worker is gone, and a new one of that name begins anew
			continue
		}
		all[id] = stats[at].Drained
	}
	return all
}

// apply repeats another router's call of Drain, unless a later one is known.
func (d *drains) apply(c *Session, now time.Time) {
	m, ok := readMark(c.Value)
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ok || c.Life <= 0 || m.at <= d.known[c.Key].at || !d.pool.Workers.Drain(c.Key, m.on, now) {
		return
	}
	if d.known == nil {
		d.known = map[string]mark{}
	}
	d.known[c.Key] = m
	if !m.on {
		d.pool.Book.Asked.Add(c.Key, time.Time{})
	}
}

// handOver has this router hand over a worker that drains, as another one does.
func (d *drains) handOver(c *Session, now time.Time) {
	if c.Life > 0 && d.pool.Workers.Drains()[c.Key] {
		d.pool.Book.Asked.Add(c.Key, now.Add(c.Life))
	}
}

func (m mark) text() []byte {
	return []byte(strconv.FormatBool(m.on) + " " + strconv.FormatInt(m.at, 10))
}

func readMark(text []byte) (m mark, ok bool) {
	on, at, _ := strings.Cut(string(text), " ")
	var errOn, errAt error
	m.on, errOn = strconv.ParseBool(on)
	m.at, errAt = strconv.ParseInt(at, 10, 64)
	return m, errOn == nil && errAt == nil
}
