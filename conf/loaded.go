package conf

import (
	"slices"
	"sync"
)

// Loaded remembers which contents of the files are in force, so that the watch does not load again what the start, the
// admin API or a signal has loaded. The zero value remembers none. Safe for concurrent use.
type Loaded struct {
	mu      sync.Mutex // guards all below
	sum     sum        // of the file and of those that it names; zero = not known
	refused []string   // files of the configuration that was refused last; nil if the last one came into force
}

// Load loads the file at path and has Apply put it into force.
func (l *Loaded) Load(path string, apply func(*Config) error) (*Config, error) {
	c, err := load(path)
	if err != nil {
		l.refuse(c)
		return nil, err
	}
	return c, l.Apply(c, apply)
}

// Apply has apply put c into force. It does not remember files that have changed since c was loaded, nor files that
// apply refused: the watch loads those once more.
func (l *Loaded) Apply(c *Config, apply func(*Config) error) error {
	l.remember(sum{})
	if err := apply(c); err != nil {
		l.refuse(c)
		return err
	}
	now, ok := digest(c.Files())
	if was, known := c.digest(); !ok || !known || was != now {
		now = sum{}
	}
	l.remember(now)
	return nil
}

// Files lists the files to watch while c is in force: those of c, and those of a configuration that was refused since.
// Its module may be what is missing, or what its author mends next.
func (l *Loaded) Files(c *Config) []string {
	files := c.Files()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, path := range l.refused {
		if !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files
}

// Holds reports whether the files of c, which is in force, still have the contents that were loaded.
func (l *Loaded) Holds(c *Config) bool {
	now, ok := digest(c.Files())
	l.mu.Lock()
	defer l.mu.Unlock()
	return ok && l.sum != sum{} && l.sum == now
}

func (l *Loaded) remember(s sum) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sum, l.refused = s, nil
}

// refuse forgets what is in force, and notes the files of c, which is refused; nil if it could not be read.
func (l *Loaded) refuse(c *Config) {
	l.remember(sum{})
	if c == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused = c.Files()
}
