package tokens

import (
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/parts/breaker"
)

// rests is when a worker is not asked. One that is slow to tokenise is busy with requests, and does better without
// questions.
var rests = breaker.Rule{Failures: 3, Rest: time.Second, Longest: 30 * time.Second}

// knownFor is how long a worker is known to have no render: it may be restarted with another flag.
const knownFor = 10 * time.Minute

// standings keeps of each worker whether it may be asked, and how. It is safe for concurrent use.
type standings struct {
	mu sync.Mutex // guards of
	of map[string]*standing
}

// standing is one worker's.
type standing struct {
	breaker breaker.Breaker
	bare    [2]time.Time // until when it is taken to have no render: of chats and completions, of the other kinds
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
		w = &standing{breaker: breaker.Breaker{Rule: rests}}
		s.of[id] = w
	}
	return w
}

// breaker returns the breaker of a worker.
func (s *standings) breaker(id string) *breaker.Breaker {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &s.worker(id).breaker
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
