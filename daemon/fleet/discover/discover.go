package discover

import (
	"cmp"
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

	// Registered returns the workers that registered themselves. nil = none can.
	Registered func() []W
}

// Format is how workers are described. A method for a source that is never used is not called.
type Format[W any] interface {
	// URL identifies a worker.
	URL(w W) string
	// AtURL returns a worker of which only the URL is known, and whether Sources.Prefillers gave it.
	AtURL(url string, prefiller bool) W
	// AtPod returns the worker in a pod, likewise.
	AtPod(p endpoints.Worker, prefiller bool) W
	// ReadFile reads a list of workers.
	ReadFile(path string) ([]W, error)
	// Watch calls changed with the first contents of files, and after each change, until ctx ends. It calls files at
	// each look.
	Watch(ctx context.Context, files func() []string, changed func())
}

// Sources are where the workers of a pool come from.
type Sources[W equaler[W]] struct {
	Workers []W    // of the configuration itself
	File    string // with a list of workers; "" = none

	Group
	Prefillers Group // which only compute prompts. A worker that both groups give is one of these
}

// Group is what gives addresses of workers, and nothing else about them.
type Group struct {
	Name       string            // host:port, a worker at each address of host; "" = none
	Kubernetes endpoints.Service // whose pods are workers
}

// Discovery finds the workers of a pool. Make it with New; it is safe for concurrent use.
type Discovery[W equaler[W]] struct {
	config Config[W]
	file   fileSource[W]
	groups [2]group // Sources.Prefillers, Sources.Group

	mu      sync.Mutex // guards all below
	own     []W        // Sources.Workers
	given   []W        // by Workers
	origins map[string]Origin
}

// Origin is the kind of source that gave a worker.
type Origin string

// The kinds of sources, by their words in the configuration.
const (
	OwnFile    Origin = "configuration"
	ListFile   Origin = "workers_file"
	Registered Origin = "registered"
	Name       Origin = "workers_dns"
	Kubernetes Origin = "kubernetes"
)

// New makes a discovery without sources.
func New[W equaler[W]](c Config[W]) *Discovery[W] {
	d := &Discovery[W]{config: c, file: fileSource[W]{log: c.Log, format: c.Format}}
	for i := range d.groups {
		d.groups[i] = group{name: nameSource{log: c.Log, resolve: c.Resolve}, pods: endpoints.New(c.Log)}
	}
	return d
}

// group follows a Group.
type group struct {
	name nameSource
	pods *endpoints.Source
}

// Take replaces the sources, asks them once, at once, and returns the workers.
func (d *Discovery[W]) Take(ctx context.Context, s Sources[W]) []W {
	d.mu.Lock()
	d.own = s.Workers
	d.file.follow(s.File)
	given := [len(d.groups)]Group{s.Prefillers, s.Group}
	for i := range d.groups {
		d.groups[i].name.follow(given[i].Name)
	}
	d.mu.Unlock()
	d.file.read()
	for i := range d.groups {
		d.groups[i].name.ask(ctx)
		d.groups[i].pods.Follow(ctx, given[i].Kubernetes)
	}
	return d.Workers()
}

// Workers returns the union of all sources, by their last answers.
func (d *Discovery[W]) Workers() []W {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given = d.union()
	return slices.Clone(d.given)
}

// Origin returns where the worker at a URL comes from, "" if no source gives it.
func (d *Discovery[W]) Origin(url string) Origin {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.origins[url]
}

// Failing returns why a source has no answer now, and those it gave before stay; "" if each has one.
func (d *Discovery[W]) Failing() (why string) {
	err := d.file.why()
	for i := range d.groups {
		err = cmp.Or(err, d.groups[i].name.why())
	}
	if err != nil {
		why = err.Error()
	}
	return why
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
	f := d.config.Format
	d.origins = map[string]Origin{}
	add := func(from Origin, workers ...W) {
		for _, w := range workers {
			if url := f.URL(w); d.origins[url] == "" {
				d.origins[url] = from
				all = append(all, w)
			}
		}
	}
	add(OwnFile, d.own...)
	add(ListFile, d.file.last()...)
	if d.config.Registered != nil {
		add(Registered, d.config.Registered()...)
	}
	for i := range d.groups {
		for _, url := range d.groups[i].name.urls() {
			add(Name, f.AtURL(url, i == 0))
		}
		for _, p := range d.groups[i].pods.Workers() {
			add(Kubernetes, f.AtPod(p, i == 0))
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
	for i := range d.groups {
		both.Go(func() { d.groups[i].name.askAgain(ctx, signal) })
		both.Go(func() { d.groups[i].pods.Run(ctx, signal) })
	}
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
