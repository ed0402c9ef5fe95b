package conf

import "sync"

// Loaded remembers which contents of the files are in force, so that the watch does not load again what the start, the
// admin API or a signal has loaded. The zero value remembers none. Safe for concurrent use.
type Loaded struct {
	mu  sync.Mutex // guards sum
	sum sum        // of the file and of those that it names; zero = not known
}

// Load loads the file at path and has Apply put it into force.
func (l *Loaded) Load(path string, apply func(*Config) error) (*Config, error) {
	c, err := Load(path)
	if err != nil {
		l.remember(sum{})
		return c, err
	}
	return c, l.Apply(c, apply)
}

// Apply has apply put c into force. It does not remember files that have changed since c was loaded, nor files that
// apply refused: the watch loads those once more.
func (l *Loaded) Apply(c *Config, apply func(*Config) error) error {
	l.remember(sum{})
	if err := apply(c); err != nil {
		return err
	}
	now, ok := digest(c.Files())
	if was, known := c.digest(); ok && known && was == now {
		l.remember(now)
	}
	return nil
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
	l.sum = s
}
