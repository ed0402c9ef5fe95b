package metrics

import (
	"sync"
	"time"
)

// Reload is the result of the last reading of the configuration's file.
type Reload struct {
	At      time.Time `json:"at"`
	OK      bool      `json:"ok"`
	File    string    `json:"file,omitempty"`
	Error   string    `json:"error,omitempty"`         // why the configuration from before stays in force
	Changed []string  `json:"changed,omitempty"`       // keys, without their values
	Restart []string  `json:"needs_restart,omitempty"` // keys of the file that take effect at the next start
	Kept    []string  `json:"kept,omitempty"`          // what stays as it was before, as the new one is worse, and why
}

// reloads keeps the last reload, and the last one that changed something. If the watch of the file has taken a change
// up, a reload by hand finds none, and its caller still wants to see the change.
type reloads struct {
	mu     sync.Mutex // guards all below
	last   Reload
	change *Reload // never changed, only replaced
}

// set records a reload. A refused one does not change the keys that wait for a restart.
func (r *reloads) set(to Reload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !to.OK {
		to.Restart = r.last.Restart
	}
	if len(to.Changed) > 0 {
		r.change = &to
	}
	r.last = to
}

// get returns the last reload, and the last one that changed something; nil = none has.
func (r *reloads) get() (last Reload, change *Reload) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last, r.change
}

// LastReload returns the last reload, and the last one that changed something; nil = none has.
func (m *Metrics) LastReload() (last Reload, change *Reload) { return m.reload.get() }
