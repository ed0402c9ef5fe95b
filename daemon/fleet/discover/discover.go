package discover

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/warmpath/warmpath/daemon/fleet/discover/endpoints"
)

// Config is a Discovery's. W is the sources' description of a worker.
type Config[W equaler[W]] struct {
	Log     *slog.Logger
	Resolve Resolver
	Format  Format[W]
}

// Format is how workers are described. A method for a source that is never used is not called.
type Format[W any] interface {
	// URL identifies a worker.
	URL(w W) string
	// AtURL returns a worker of which only the URL is known.
	AtURL(url string) W
	// AtPod returns the worker in a pod.
	AtPod(p endpoints.Worker) W
	// ReadFile reads a list of workers.
	ReadFile(path string) ([]W, error)
	// Watch calls changed after each change in the contents of files, and for what it finds first, until ctx ends. It
	// calls files at each look.
	Watch(ctx context.Context, files func() []string, changed func())
}

// Sources are where the workers of a pool come from.
type Sources[W equaler[W]] struct {
	Workers []W    // of the configuration itself
	File    string // with a list of workers; "" = none
	Name    string // host:port, a worker at each address of host; "" = none

	Kubernetes endpoints.Service // whose pods are workers
}

// Discovery finds the workers of a pool. Make it with New; it is safe for concurrent use.
type Discovery[W equaler[W]] struct {
	config Config[W]
	file   fileSource[W]
	name   nameSource
	pods   *endpoints.Source

	mu    sync.Mutex // guards all below
	own   []W        // Sources.Workers
	given []W        // by Workers
}

// New makes a discovery without sources.
func New[W equaler[W]](c Config[W]) *Discovery[W] {
	return &Discovery[W]{
		config: c,
		file:   fileSource[W]{log: c.Log, format: c.Format},
		name:   nameSource{log: c.Log, resolve: c.Resolve},
		pods:   endpoints.New(c.Log),
	}
}

// Take replaces the sources, asks them once, at once, and returns the workers.
func (d *Discovery[W]) Take(ctx context.Context, s Sources[W]) []W {
	d.mu.Lock()
	d.own = s.Workers
	d.file.follow(s.File)
	d.name.follow(s.Name)
	d.mu.Unlock()
	d.file.read()
	d.name.ask(ctx)
	d.pods.Follow(ctx, s.Kubernetes)
	return d.Workers()
}

// Workers returns the union of all sources, by their last answers.
func (d *Discovery[W]) Workers() []W {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given = d.union()
	return slices.Clone(d.given)
}

// changed returns the workers if they are not those that were given last.
func (d *Discovery[W]) changed() ([]W, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.union()
	if slices.EqualFunc(now, d.given, W.Equal) {
		return nil, false
	}
	d.given = now
	return slices.Clone(now), true
}

// union is all sources' workers. The caller holds d.mu.
func (d *Discovery[W]) union() (all []W) {
	var named []W
	for _, url := range d.name.urls() {
		named = append(named, d.config.Format.AtURL(url))
	}
	for _, p := range d.pods.Workers() {
		named = append(named, d.config.Format.AtPod(p))
	}
	seen := map[string]bool{}
	for _, source := range [][]W{d.own, d.file.last(), named} {
		for _, w := range source {
			if url := d.config.Format.URL(w); !seen[url] {
				seen[url] = true
				all = append(all, w)
			}
		}
	}
	return all
}

// Run follows the sources until ctx ends. It passes each list that differs from the last one to changed, one at a time
// and without a lock.
func (d *Discovery[W]) Run(ctx context.Context, changed func([]W)) {
	var both sync.WaitGroup
	defer both.Wait()
	asked := make(chan struct{}, 1) // a source was asked
	signal := func() {
		select {
		case asked <- struct{}{}:
		default:
		}
	}
	reread := func() { d.file.read(); signal() }
	both.Go(func() { d.config.Format.Watch(ctx, d.file.paths, reread) })
	both.Go(func() { d.name.askAgain(ctx, signal) })
	both.Go(func() { d.pods.Run(ctx, signal) })
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
			if workers, ok := d.changed(); ok {
				changed(workers)
			}
		}
	}
}
