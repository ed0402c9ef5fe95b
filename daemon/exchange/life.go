package exchange

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/upstream"
)

// Life is the context of one request, from its header to the end of its answer. A context.WithCancelCause with a
// context.AfterFunc on it cost nine allocations and six locks a request, 5 % of its CPU time; this is one.
//
// It serves no second request: contexts made from it, as net.Dialer's, ask it why it ended when it has, on a
// goroutine that may come late, and package context panics if it is told that it has not.
//
// Err and context.Cause both say why it ended: ErrClientGone or ErrDraining.
type Life struct {
	of         *Lives
	prev, next *Life // guarded by of.mu

	now atomic.Pointer[attempt] // the attempt under way, or the last one

	mu     sync.Mutex // guards all below; held while hears is told
	cause  error
	hears  upstream.Hearer // the transport's request under way
	done   chan struct{}   // made when it is asked for
	others []*after
}

// after is a function that waits for the end of a life.
type after struct{ f func() }

// End ends the request. Only the first cause counts.
func (l *Life) End(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		return
	}
	l.cause = cause
	if l.hears != nil {
		l.hears.Ended()
		l.hears = nil
	}
	if l.done != nil {
		close(l.done)
	}
	for _, o := range l.others {
		go o.f() // it may ask us why
	}
	l.others = nil
}

// interrupt ends the transport's request under way if it is a's. The request itself goes on.
func (l *Life) interrupt(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hears != nil && l.now.Load() == a {
		l.hears.Ended()
		l.hears = nil
	}
}

// Hear implements upstream.Life.
func (l *Life) Hear(h upstream.Hearer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		h.Ended()
		return
	}
	l.hears = h
}

// Forget implements upstream.Life.
func (l *Life) Forget(h upstream.Hearer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hears == h {
		l.hears = nil
	}
}

// AfterFunc is what package context looks for before it spends a goroutine on a context that is not its own.
func (l *Life) AfterFunc(f func()) (stop func() bool) {
	a := &after{f}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cause != nil {
		go f()
		return func() bool { return false }
	}
	l.others = append(l.others, a)
	return func() bool { return l.drop(a) }
}

func (l *Life) drop(a *after) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.others {
		if o == a {
			l.others = append(l.others[:i], l.others[i+1:]...)
			return true
		}
	}
	return false
}

// Done implements context.Context.
func (l *Life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.cause != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err implements context.Context: it is the cause.
func (l *Life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Deadline implements context.Context: there is none.
func (l *Life) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context: there is none.
func (l *Life) Value(any) any { return nil }

// Lives are the requests under way: what a drain ends that they outlive.
type Lives struct {
	mu    sync.Mutex // guards all below
	first *Life
	cause error // of their end, and that of all to come
}

// Begin enters a request.
func (s *Lives) Begin(l *Life) {
	s.mu.Lock()
	l.of, l.next = s, s.first
	if s.first != nil {
		s.first.prev = l
	}
	s.first = l
	cause := s.cause
	s.mu.Unlock()
	if cause != nil {
		l.End(cause)
	}
}

// Leave takes a request out that has ended. What still waits for its end is told.
func (l *Life) Leave() {
	l.End(context.Canceled)
	s := l.of
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.prev != nil {
		l.prev.next = l.next
	} else {
		s.first = l.next
	}
	if l.next != nil {
		l.next.prev = l.prev
	}
	l.prev, l.next = nil, nil
}

// Cut ends all requests, those too that begin later.
func (s *Lives) Cut(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = cause
	for l := s.first; l != nil; l = l.next {
		l.End(cause)
	}
}

var _ upstream.Life = (*Life)(nil)
