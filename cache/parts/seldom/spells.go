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

// quiet is how long a spell that Over does not end lasts after its last trouble.
const quiet = time.Minute

// Spells are troubles that last, each by a key, of which there must be few. A spell has a line when it begins, one each
// five minutes with how many there were, and one when it ends. The zero value is none. It is safe for concurrent use.
type Spells struct {
	mu sync.Mutex // guards all below
	on map[string]*spell
}

type spell struct {
	began, logged time.Time
	n             int
	ending        *time.Timer // after quiet; nil = Over ends it
}

// Warn counts a trouble, and logs it if a line is due.
func (s *Spells) Warn(log *slog.Logger, key, text string, args ...any) {
	s.count(log.Warn, key, text, args...)
}

func (s *Spells) count(line func(string, ...any), key, text string, args ...any) {
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
	line(text, args...)
}

// WarnUntilQuiet is Warn for a trouble that Over does not end: its spell ends when a minute has passed without another
// one. If there were several, over is logged with their number.
func (s *Spells) WarnUntilQuiet(log *slog.Logger, key, text, over string, args ...any) {
	s.Warn(log, key, text, args...)
	s.awaitQuiet(log, key, over)
}

// InfoUntilQuiet is WarnUntilQuiet for what is no trouble.
func (s *Spells) InfoUntilQuiet(log *slog.Logger, key, text, over string, args ...any) {
	s.count(log.Info, key, text, args...)
	s.awaitQuiet(log, key, over)
}

func (s *Spells) awaitQuiet(log *slog.Logger, key, over string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.on[key]
	switch {
	case x == nil: // it has just ended
	case x.ending == nil:
		x.ending = time.AfterFunc(quiet, func() { s.over(log, func(k string) bool { return k == key }, over) })
	default:
		x.ending.Reset(quiet)
	}
}

// Over ends the spells whose key begins so, and logs how many troubles there were.
func (s *Spells) Over(log *slog.Logger, begins, text string) {
	s.over(log, func(key string) bool { return strings.HasPrefix(key, begins) }, text)
}

func (s *Spells) over(log *slog.Logger, ends func(key string) bool, text string) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.on, func(key string, x *spell) bool {
		is := ends(key)
		end := now
		if x.ending != nil {
			end = now.Add(-quiet)
		}
		if is && (x.ending == nil || x.n > 1) {
			log.Info(text, "times", x.n, "for", end.Sub(x.began).Round(time.Second))
		}
		return is
	})
}
