package conf

import "sync"

// Loaded remembers which contents of the files are in force, so that who watches them does not load again what the
// admin API or a signal has loaded. The zero value remembers none. Safe for concurrent use.
type Loaded struct {
	mu  sync.Mutex // guards sum
	sum sum        // of the file and of those that it names; zero = not known
}

// Load loads the file at path and has apply put it into force. A file that changes meanwhile, and one that is refused,
// is not remembered: who watches has it loaded once more.
func (l *Loaded) Load(path string, apply func(*Config) error) (*Config, error) {
	l.remember(sum{})
	was, read := digest([]string{path})
	c, err := Load(path)
	if err != nil {
		return c, err
	}
	before, known := digest(c.Files())
	if err := apply(c); err != nil {
		return c, err
	}
	now, again := digest([]string{path})
	after, still := digest(c.Files())
	if read && again && known && still && was == now && before == after {
		l.remember(after)
	}
	return c, nil
}

// Holds reports whether the files of c, which is in force, have now what was loaded.
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
