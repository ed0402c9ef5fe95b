package seldom

import (
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
)

// again is how often a trouble that lasts is logged.
const again = 5 * time.Minute

// Spells are troubles that last, each by a key, of which there must be few. A spell has a line when it begins, one each
// five minutes with how many there were, and one when it ends. The zero value is none. It is safe for concurrent use.
type Spells struct {
	mu sync.Mutex // guards all below
	on map[string]*spell
}

type spell struct {
	began, logged time.Time
	n             int
}

// Warn counts a trouble, and logs it if a line is due.
func (s *Spells) Warn(log *slog.Logger, key, text string, args ...any) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.on[key]
	if x == nil {
		if s.on == nil {
			s.on = map[string]*spell{}
		}
		x = &spell{began: now}
		s.on[key] = x
	}
	x.n++
	if !x.logged.IsZero() && now.Sub(x.logged) < again {
		return
	}
	x.logged = now
	if x.n > 1 {
		args = append(args, "times", x.n, "for", now.Sub(x.began).Round(time.Second))
	}
	log.Warn(text, args...)
}

// Over ends the spells whose key begins so, and logs how many troubles there were.
func (s *Spells) Over(log *slog.Logger, begins, text string) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.on, func(key string, x *spell) bool {
		is := strings.HasPrefix(key, begins)
		if is {
			log.Info(text, "times", x.n, "for", now.Sub(x.began).Round(time.Second))
		}
		return is
	})
}
