package endpoints

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Waits between two tries.
const (
	firstWait = 500 * time.Millisecond
	maxWait   = 30 * time.Second
	settled   = 10 * time.Second // a conversation of that length is none that failed
	askFor    = 5 * time.Second  // of Follow's caller
)

// Source is the workers of one service. Make it with New; it is safe for concurrent use.
type Source struct {
	log *slog.Logger

	asking sync.Mutex // one list at a time
	api    apiServer

	mu      sync.Mutex // guards all below
	service followed
	slices  map[string]*slice
	version string          // to watch from; "" = list first
	ready   map[string]bool // URLs that were ready once
	workers []Worker
	failing bool               // the outage is logged
	end     context.CancelFunc // of the watch under way
	moved   chan struct{}      // closed when the service is another
}

// followed is a service from the moment that Follow took it: what answers a question for an earlier one is dropped.
type followed struct {
	Service
	number int
}

// New makes a source that follows nothing.
func New(log *slog.Logger) *Source { return &Source{log: log, moved: make(chan struct{})} }

// Follow makes s the service and lists its slices, unless it is followed already. It drops the workers of the
// previous service.
func (c *Source) Follow(ctx context.Context, s Service) {
	c.mu.Lock()
	if s == c.service.Service {
		c.mu.Unlock()
		return
	}
	c.service = followed{Service: s, number: c.service.number + 1}
	one := c.service
	c.slices, c.version, c.ready, c.workers, c.failing = nil, "", map[string]bool{}, nil, false
	if c.end != nil {
		c.end()
	}
	close(c.moved)
	c.moved = make(chan struct{})
	c.mu.Unlock()
	if s.isNone() {
		return
	}
	ctx, stop := context.WithTimeout(ctx, askFor)
	defer stop()
	if err := c.list(ctx, one); err != nil {
		c.failed(one, err)
	}
}

// Workers returns the workers by the API server's last answer.
func (c *Source) Workers() []Worker {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.workers)
}

// Run follows the service until ctx ends, and calls changed after each change of the workers.
func (c *Source) Run(ctx context.Context, changed func()) {
	wait := firstWait
	for ctx.Err() == nil {
		one, end := context.WithCancel(ctx)
		c.mu.Lock()
		s, moved := c.service, c.moved
		c.end = end
		c.mu.Unlock()
		if s.isNone() {
			sleep(ctx, moved, maxWait)
			end()
			continue
		}
		began := time.Now()
		err := c.talk(one, s, changed)
		if err != nil && one.Err() == nil && !isGone(err) {
			c.failed(s, err)
		}
		end()
		if time.Since(began) > settled {
			wait = firstWait
		}
		sleep(ctx, moved, max(wait/2+rand.N(wait), min(retryAfter(err), maxWait)))
		wait = min(2*wait, maxWait)
	}
}

// talk lists if it must, and then watches until the watch ends.
func (c *Source) talk(ctx context.Context, s followed, changed func()) error {
	listing, stop := context.WithTimeout(ctx, listTimeout)
	defer stop()
	if err := c.list(listing, s); err != nil {
		return err
	}
	changed() // also what Follow found before Run began
	err := c.api.watch(ctx, s.Service, watching{
		version: c.since(), lasts: watchFor*9/10 + rand.N(watchFor/5), opened: func() { c.answers(s) },
		took: func(kind string, one *slice) {
			if c.took(s, kind, one) {
				changed()
			}
		},
	})
	if needsList(err) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s == c.service {
			c.version = ""
		}
	}
	return err
}

// since returns the version that a watch starts from.
func (c *Source) since() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version
}

// list replaces all slices by those of the API server, unless there is a version to watch from.
func (c *Source) list(ctx context.Context, s followed) error {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.since() != "" {
		return nil
	}
	found, version, err := c.api.list(ctx, s.Service)
	if err != nil {
		return err
	}
	c.answers(s)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s != c.service {
		return nil
	}
	first := c.slices == nil
	c.slices, c.version = found, version
	if !c.remake() && first {
		c.noneReady(0)
	}
	return nil
}

// took applies an event, and reports whether the workers have changed.
func (c *Source) took(s followed, kind string, one *slice) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s != c.service || c.slices == nil {
		return false
	}
	if one.Metadata.Version != "" {
		c.version = one.Metadata.Version
	}
	switch kind {
	case "ADDED", "MODIFIED":
		c.slices[one.Metadata.Name] = one
	case "DELETED":
		delete(c.slices, one.Metadata.Name)
	default: // BOOKMARK, and what later versions of the API may have
		return false
	}
	return c.remake()
}

// remake makes the workers of the slices, and reports whether they have changed. The caller holds c.mu.
func (c *Source) remake() bool {
	now := workersOf(c.slices, c.service.Port, c.ready)
	if slices.Equal(now, c.workers) {
		return false
	}
	c.workers = now
	leaving := 0
	for _, w := range now {
		if w.Leaving {
			leaving++
		}
	}
	if len(now) == leaving {
		c.noneReady(leaving)
		return true
	}
	c.log.Info("Kubernetes lists the workers", "endpoints", c.service.labels(), "workers", len(now)-leaving,
		"leaving", leaving)
	return true
}

// noneReady logs that no worker can serve. The caller holds c.mu.
func (c *Source) noneReady(leaving int) {
	c.log.Warn("Kubernetes lists no ready pod: look at the pods, the selector and the port",
		"endpoints", c.service.labels(), "port", c.service.Port, "slices", len(c.slices), "leaving", leaving)
}

// answers logs the end of an outage.
func (c *Source) answers(s followed) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == c.service && c.failing {
		c.failing = false
		c.log.Info("Kubernetes answers again", "endpoints", s.labels())
	}
}

// failed logs the beginning of an outage.
func (c *Source) failed(s followed, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s == c.service && !c.failing {
		c.failing = true
		c.log.Warn("Kubernetes does not list the workers: those it gave before stay, it is asked again",
			"endpoints", s.labels(), "workers", len(c.workers), "error", err)
	}
}

// sleep waits for d, until ctx ends or the service is another.
func sleep(ctx context.Context, moved <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-moved:
	case <-t.C:
	}
}
