package tokens

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of the text that goes to /tokenize, which tokenises whatever comes, at some 650 bytes of the worker's memory a
// byte. A body of 8 bytes a token is longer than any prompt that the model takes, escapes and all.
const (
	bytesPerToken = 8
	unknownLength = 128 << 10 // while the model's longest prompt is not known
	maxModels     = 256       // whose longest prompt is remembered
)

var errTooLong = errors.New("tokens: more text than the model can take")

// lengths knows how long a prompt each model takes, by the answers of /tokenize. It is safe for concurrent use.
type lengths struct {
	mu sync.Mutex // guards of
	of map[string]int
}

// most returns the bytes of a body that may go to a worker at all: /tokenize is not the only way.
func (l *lengths) most(model string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n, known := l.of[model]; known {
		return min(maxText, bytesPerToken*n)
	}
	return maxText
}

// fits reports whether a body may go to /tokenize. known is false if that depends on the model's longest prompt, which
// is not known yet.
func (l *lengths) fits(model string, size int) (fits, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, known := l.of[model]
	if !known {
		return size <= unknownLength, size <= unknownLength
	}
	return size <= bytesPerToken*n, true
}

func (l *lengths) learn(model string, tokens int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if tokens <= 0 {
		return
	}
	if l.of == nil || len(l.of) >= maxModels {
		l.of = map[string]int{}
	}
	l.of[model] = tokens
}

// pace estimates how long the workers take for a text, so that a request does not wait for an answer that will be
// late. It is safe for concurrent use.
type pace struct{ perMiB atomic.Int64 } // nanoseconds; 0 = not known

// longText is from where on the time is the text's, and not the connection's.
const longText = 32 << 10

// of returns the time for a text of the given length in bytes, 0 if it is short or nothing is known.
func (p *pace) of(size int) time.Duration {
	if size < longText {
		return 0
	}
	return time.Duration(float64(p.perMiB.Load()) * float64(size) / (1 << 20))
}

// learn records how long a text took. Quick answers count more: one slow answer of a busy machine does not show its
// pace.
func (p *pace) learn(size int, took time.Duration) {
	if size < longText {
		return
	}
	now := int64(float64(took) * (1 << 20) / float64(size))
	was := p.perMiB.Load()
	switch {
	case was == 0:
	case now < was:
		now = (was + now) / 2
	default:
		now = was + (now-was)/8
	}
	p.perMiB.Store(max(1, now)) // two that learn at once lose one of the two
}
