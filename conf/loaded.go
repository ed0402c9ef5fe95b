package conf

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Loaded remembers which contents of the files are in force, so that the watch does not load again what the start, the
// admin API or a signal has loaded. The zero value remembers none. Safe for concurrent use.
type Loaded struct {
	mu      sync.Mutex // guards all below
	sum     sum        // of the file in force and of those that it names; zero = not known
	refused bool       // the last configuration was
	files   []string   // of the refused one; nil if it could not be read
	again   bool       // the watch has loaded once more since
}

// Load loads the file at path and has Apply put it into force.
func (l *Loaded) Load(path string, apply func(*Config) error) (*Config, error) {
	c, err := Load(path)
	if err != nil {
		l.refuse(c)
		return nil, err
	}
	return c, l.Apply(c, apply)
}

// Apply has apply put c into force. It does not remember files that have changed since c was loaded: the watch loads
// those once more.
func (l *Loaded) Apply(c *Config, apply func(*Config) error) error {
	if err := apply(c); err != nil {
		l.refuse(c)
		return err
	}
	now, ok := digest(c.Files())
	if was, known := c.digest(); !ok || !known || was != now {
		now = sum{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum = now
	l.refused = false
	l.files = nil
	l.again = false
	return nil
}

// refuse notes that c has been refused; nil if it could not be read.
func (l *Loaded) refuse(c *Config) {
	var files []string
	if c != nil {
		files = c.Files()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = true
	l.files = files
}

// Files lists the files to watch while c is in force: those of c, and those of a configuration that was refused since.
// Its module may be what is missing, or what its author mends next.
func (l *Loaded) Files(c *Config) []string {
	files := c.Files()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range l.files {
		if !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files
}

// Holds reports whether the files of c, which is in force, have the same contents as when they were loaded. It is false
// if a configuration has been refused since.
func (l *Loaded) Holds(c *Config) bool {
	now, ok := digest(c.Files())
	l.mu.Lock()
	defer l.mu.Unlock()
	return ok && !l.refused && l.sum != sum{} && l.sum == now
}

// Watch calls load when the files that are to be watched change, as the function Watch does, or have changed since they
// were loaded. It holds loading meanwhile, as all must who load: a load that lasts is seen as a change, and what it has
// loaded when it ends is not loaded again.
//
// It also calls load once after a refusal, if the files have the contents in force. A signal may come while a file is
// missing or half written. The watch sees no change when the file is back as it was, and the refusal would stand for
// ever (TestARefusalEndsWhenTheFilesAreBack).
func (l *Loaded) Watch(ctx context.Context, poll time.Duration, loading sync.Locker, inForce func() *Config,
	load func()) {
	files := func() []string { return l.Files(inForce()) }
	watch(ctx, poll, files, func(now map[string]sum) bool { return l.back(inForce(), now) }, func() {
		loading.Lock()
		defer loading.Unlock()
		if !l.Holds(inForce()) {
			load()
		}
	})
}

// back reports, once after a refusal, that the files of c, which is in force, have its contents; sums has those of now.
func (l *Loaded) back(c *Config, sums map[string]sum) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.refused || l.again {
		return false
	}
	now, ok := digestOf(c.Files(), sums)
	l.again = ok && l.sum == now
	return l.again
}
