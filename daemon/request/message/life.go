package message

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/linked"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Life is the context of one request, from its header to the end of its answer. It is one allocation. A
// context.WithCancelCause with a context.AfterFunc on it made nine, and took six locks.
//
// It serves another request only if no context was made from it. Such a context, as net.Dialer's, reads the Life's
// error after its end, on a goroutine that may come late. Package context panics if there is no error then.
//
// Err and context.Cause both return why it ended: ErrClientGone or ErrDraining.
type Life struct {
	of    *Lives
	among linked.Links[Life] // guarded by of.mu

	attempt atomic.Uint32 // the number of the attempt under way, or of the last one

	mu     sync.Mutex // guards all below; held while hearer is called
	cause  error
	hearer upstream.Hearer // the transport's request under way
	done   chan struct{}   // made when it is asked for
	others []*after
	shared bool // a context may have been made from it
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
	if l.hearer != nil {
		l.hearer.Ended()
		l.hearer = nil
	}
	if l.done != nil {
		close(l.done)
	}
	for _, o := range l.others {
		go o.f() // it may ask us why
	}
	l.others = nil
}

// Renew makes a life that has left ready for another request. It returns false if that is not allowed.
func (l *Life) Renew() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shared || l.hearer != nil {
		return false
	}
	l.cause = nil
	l.attempt.Add(1) // a late interrupt finds an older one
	return true
}

// BeginAttempt returns the number of a new attempt, by which it can be interrupted until the next one begins.
func (l *Life) BeginAttempt() uint32 { return l.attempt.Add(1) }

// Interrupt ends the transport's request under way if it is that attempt's. The request itself goes on.
func (l *Life) Interrupt(attempt uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hearer != nil && l.attempt.Load() == attempt {
		l.hearer.Ended()
		l.hearer = nil
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
	l.hearer = h
}

// Forget implements upstream.Life.
func (l *Life) Forget(h upstream.Hearer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hearer == h {
		l.hearer = nil
	}
}

// AfterFunc is the method that package context looks for before it spends a goroutine on a foreign context.
func (l *Life) AfterFunc(f func()) (stop func() bool) {
	a := &after{f}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared = true
	if l.cause != nil {
		go f()
		return func() bool { return false }
	}
	l.others = append(l.others, a)
	return func() bool { return l.forgetAfter(a) }
}

// forgetAfter takes back an AfterFunc. It returns false if that has run.
func (l *Life) forgetAfter(a *after) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range l.others {
		if o == a {
			l.others = slices.Delete(l.others, i, i+1) // it clears the place: f holds a context, and a stream lasts
			return true
		}
	}
	return false
}

// Done implements context.Context.
func (l *Life) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shared = true
	if l.done == nil {
		l.done = make(chan struct{})
		if l.cause != nil {
			close(l.done)
		}
	}
	return l.done
}

// Err implements context.Context. It returns the cause.
func (l *Life) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

// Deadline implements context.Context. The context has no deadline.
func (l *Life) Deadline() (time.Time, bool) { return time.Time{}, false }

// Value implements context.Context. The context has no values.
func (l *Life) Value(any) any { return nil }

// Lives lists the requests under way. The end of a drain ends those that outlive it.
type Lives struct {
	mu    sync.Mutex // guards all below
	all   linked.List[Life]
	cause error // of their end, and that of all to come
}

// Begin enters a request.
func (s *Lives) Begin(l *Life) {
	s.mu.Lock()
	l.of = s
	s.all.Add(l, among)
	cause := s.cause
	s.mu.Unlock()
	if cause != nil {
		l.End(cause)
	}
}

// Leave ends a request and takes it out of the list.
func (l *Life) Leave() {
	l.End(context.Canceled)
	s := l.of
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Remove(l, among)
}

func among(l *Life) *linked.Links[Life] { return &l.among }

// Cut ends all requests, those too that begin later.
func (s *Lives) Cut(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cause = cause
	for l := s.all.First; l != nil; l = l.among.Next {
		l.End(cause)
	}
}

// Why a request ends before its answer does. They are the causes of its [Life].
var (
	ErrClientGone = errors.New("the client left")
	ErrDraining   = errors.New("the router is stopping")
)

// CauseOf returns why this router ended the request, or nil.
func CauseOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

var _ upstream.Life = (*Life)(nil)
