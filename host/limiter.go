package host

import (
	"sync"
	"time"
)

// limiter lets a burst of lines through and then perSecond.
type limiter struct {
	mu     sync.Mutex // guards tokens, last
	tokens float64
	last   time.Time
}

const (
	linesPerSecond = 1
	linesBurst     = 10
)

func (l *limiter) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.tokens += now.Sub(l.last).Seconds() * linesPerSecond // the first call has seconds enough to fill it
	l.last = now
	if l.tokens > linesBurst {
		l.tokens = linesBurst
	}
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
