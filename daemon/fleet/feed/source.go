package feed

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/holdings"
	"github.com/warmpath/warmpath/cache/kvevents"
)

// source is the events of one worker on their way into the index.
type source struct {
	id    string
	slot  uint32
	at    place
	sub   *kvevents.Subscriber
	entry *workerView
	log   *slog.Logger

	began     time.Time
	answered  uint64    // requests of the worker when the source began
	served    uint64    // requests of the worker, as last seen
	restarts  uint64    // of the worker, as last seen
	contested time.Time // when another publisher with its name was refused last; guarded by Feed.mu
	stop      context.CancelFunc
	done      chan struct{}
	forgotten bool // see forget; guarded by Feed.mu
}

// workerView is the view of one worker in the index.
type workerView struct {
	writer *holdings.Writer

	mu    sync.Mutex // guards the rest
	state kvevents.State
	doubt string // why the view is not believed whatever the state; "" = nothing speaks against it
}

// enter records a state of the subscriber.
func (e *workerView) enter(s kvevents.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = s
	e.writer.SetLive(s == kvevents.Live && e.doubt == "")
}

// doubted sets why the view is not believed. It reports whether that reason is new.
func (e *workerView) doubted(why string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.doubt == why {
		return false
	}
	e.doubt = why
	e.writer.SetLive(e.state == kvevents.Live && why == "")
	return true
}

// standing returns the state that the pages show.
func (e *workerView) standing() (state kvevents.State, doubt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state, e.doubt
}

// newSource makes a source that does nothing yet.
func newSource(c *Config, id string, slot uint32, at place) *source {
	s := &source{id: id, slot: slot, at: at, entry: &workerView{writer: c.Index.Writer(slot)}, done: make(chan struct{}),
		log: c.Log.With("worker", id), began: time.Now()}
	sink := kvevents.Sink(s.entry.writer)
	if c.Hear != nil {
		sink = &heard{Writer: s.entry.writer, slot: slot, hears: c.Hears, hear: c.Hear}
	}
	s.sub = kvevents.New(kvevents.Config{Endpoint: at.events, Replay: at.replay, Sink: sink, OnState: s.entry.enter,
		Log: s.log})
	return s
}

// run has do follow the events until ctx or the source ends.
func (s *source) run(ctx context.Context, do func(context.Context)) {
	ctx, s.stop = context.WithCancel(ctx)
	go func() {
		defer close(s.done)
		do(ctx)
	}()
}

// forgetAfter is how long the blocks of a worker that dials us stay in the index after its connection ended. Package
// kvevents drops a worker that it dials after the same time.
const forgetAfter = time.Minute

// forget removes the blocks once the connection has been down for this time. Its goroutine has ended too, so that no
// other goroutine writes them.
func (s *source) forget(now time.Time) {
	select {
	case <-s.done:
	default:
		return
	}
	if !s.forgotten && now.Sub(s.sub.Stats().Since) > forgetAfter {
		s.forgotten = true
		s.entry.writer.Clear()
	}
}

// close ends the source. What it entered is no longer believed.
func (s *source) close() {
	s.stop()
	<-s.done
	s.entry.writer.SetLive(false)
	s.entry.writer.Clear()
}
