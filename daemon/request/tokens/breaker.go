package tokens

import (
	"sync"
	"time"
)

// Rules of the breaker. A worker that is slow to tokenise is busy with requests, and does better without questions.
const (
	breakAfter = 3                // failures in a row
	firstRest  = time.Second      // then it is not asked for so long; each further failure doubles that
	longRest   = 30 * time.Second // at most
	knownFor   = 10 * time.Minute // that a worker has no render: it may be restarted with another flag
)

// standings keeps of each worker whether it may be asked, and how. It is safe for concurrent use.
type standings struct {
	mu sync.Mutex // guards of
	of map[string]*standing
}

// standing is one worker's.
type standing struct {
	failed int          // in a row
	until  time.Time    // it rests
	bare   [2]time.Time // until when it is taken to have no render: of chats and completions, of the other kinds
}

// maxStandings bounds the workers that are remembered: those of a large pool and its past.
const maxStandings = 4096

// worker returns the standing of a worker. The caller holds s.mu.
func (s *standings) worker(id string) *standing {
	w := s.of[id]
	if w == nil {
		if s.of == nil || len(s.of) >= maxStandings {
			s.of = map[string]*standing{}
		}
		w = new(standing)
		s.of[id] = w
	}
	return w
}

// lets reports whether the worker may be asked. After a rest it returns true once, and false to the others for another
// firstRest: that one question is the trial.
func (s *standings) lets(id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.worker(id)
	if w.failed < breakAfter {
		return true
	}
	if now.Before(w.until) {
		return false
	}
	w.until = now.Add(firstRest)
	return true
}

// answered records how a question ended. It reports that the worker begins to rest by it.
func (s *standings) answered(id string, well bool, now time.Time) (rests bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.worker(id)
	if well {
		w.failed = 0
		return false
	}
	w.failed++
	if w.failed < breakAfter {
		return false
	}
	w.until = now.Add(min(longRest, firstRest<<min(w.failed-breakAfter, 10)))
	return w.failed == breakAfter
}

// rendersAt reports whether the worker may have a render of the kind's group.
func (s *standings) rendersAt(id string, group int, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !now.Before(s.worker(id).bare[group])
}

// lacksRender records that the worker has none.
func (s *standings) lacksRender(id string, group int, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.worker(id).bare[group] = now.Add(knownFor)
}
