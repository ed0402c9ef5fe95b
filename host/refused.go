package host

import (
	"log/slog"
	"maps"
	"sync"
)

// refused counts the calls that a module may not make, by the entry of allow that it lacks: "kv", or "headers:" and a
// name. The module gets an errno, which most pass over: a value that it may not see looks to them like one that is not
// there. Safe for concurrent use.
type refused struct {
	mu    sync.Mutex // guards calls
	calls map[string]uint64
}

// maxRefused bounds the entries, as a module makes up the names of the headers that it asks for.
const maxRefused = 32

// count counts a call, and reports whether it is the first one that lacks this entry.
func (r *refused) count(entry string) (first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.calls[entry]
	if n == 0 && len(r.calls) == maxRefused {
		return false
	}
	if r.calls == nil {
		r.calls = map[string]uint64{}
	}
	r.calls[entry] = n + 1
	return n == 0
}

// all returns the calls by entry, nil if there were none.
func (r *refused) all() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.calls)
}

// refuse counts a call that allow does not permit, and logs the first one that lacks this entry.
func (r *refused) refuse(entry string, log *slog.Logger) {
	entry = oneLine(entry)
	if r.count(entry) {
		log.Warn("the strategy asks for what it may not have, and goes without; add the entry to its allow in "+
			"[strategies.NAME] if it may", "allow", entry)
	}
}

// askFile counts a call for a file, and logs the first.
func (p *program) askFile(name string) {
	if p.files.Add(1) == 1 {
		p.log.Warn("the strategy asks for a file, and files do not work here; put what it needs into its options or the "+
			"store", "file", name)
	}
}
