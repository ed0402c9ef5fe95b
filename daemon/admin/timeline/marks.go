package timeline

import (
	"slices"
	"time"
)

// The kinds of marks beside the states of workers.
const (
	Started  = "start"
	Upgraded = "upgrade" // this process has taken over from another
	Reloaded = "reload"  // the configuration has changed
	Refused  = "refused" // the configuration's file is wrong
)

// Mark is an event of the last hour.
type Mark struct {
	At      time.Time `json:"at"`
	Kind    string    `json:"kind"`              // start, upgrade, reload, refused, or the state that workers came into
	Pool    string    `json:"pool,omitempty"`    // of the workers
	Workers []string  `json:"workers,omitempty"` // the first five
	More    int       `json:"more,omitempty"`    // how many more workers
	Text    string    `json:"text,omitempty"`    // what changed, or why it was refused
}

// Mark records an event.
func (t *Timeline) Mark(m Mark) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mark(m)
}

// mark keeps an event, and deletes the oldest if there are too many. The caller holds t.mu.
func (t *Timeline) mark(m Mark) {
	if len(t.marks) >= maxMarks {
		t.marks = slices.Delete(t.marks, 0, 1)
	}
	t.marks = append(t.marks, m)
}

// compare adds a mark if a worker's state has changed since the last look. The first time that a worker comes up is not
// an event. The caller holds t.mu.
func (t *Timeline) compare(k *track, w *Worker, now time.Time) {
	before := k.state
	k.state = w.State
	fresh := before == "" || before == "starting"
	if before == w.State || w.State == "starting" || fresh && w.Up {
		return
	}
	for i := len(t.marks) - 1; i >= 0 && number(t.marks[i].At) == number(now); i-- {
		if m := &t.marks[i]; m.Kind == w.State && m.Pool == w.Pool {
			m.name(w.ID)
			return
		}
	}
	t.mark(Mark{At: now, Kind: w.State, Pool: w.Pool, Workers: []string{w.ID}})
}

// name adds a worker to a mark of the same span. A worker that flaps within it is named once.
func (m *Mark) name(id string) {
	switch {
	case slices.Contains(m.Workers, id):
	case len(m.Workers) >= maxNamed:
		m.More++
	default:
		m.Workers = append(m.Workers, id)
	}
}

// Marks returns the events of the last hour, the oldest first: those of the pools, and those of the process.
func (t *Timeline) Marks(pools []string, now time.Time) []Mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := []Mark{}
	for _, m := range t.marks {
		if now.Sub(m.At) < time.Hour && (m.Pool == "" || slices.Contains(pools, m.Pool)) {
			m.Workers = slices.Clone(m.Workers)
			all = append(all, m)
		}
	}
	return all
}
