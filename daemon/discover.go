package daemon

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/conf"
)

const (
	resolveEvery   = 5 * time.Second // give or take a tenth; the TTL of a headless Kubernetes service
	resolveTimeout = 3 * time.Second
	maxAddresses   = 4096 // taken from one answer
)

// resolver gives the addresses of a name. It is net.Resolver's in the process and a table in tests.
type resolver func(ctx context.Context, host string) ([]netip.Addr, error)

// discovery finds the workers of a pool: those of the configuration, those of workers_file, and those that the name of
// workers_dns has addresses of. What a source said last stays true until it says something else: a file that is wrong or away, a
// name server that fails or knows no address, take no worker from us, since those that are really gone show by their health.
type discovery struct {
	log     *slog.Logger
	resolve resolver
	changed func() // workers would give another list than it gave last; called by run alone, without a lock

	reading, asking sync.Mutex // one reader and one asker at a time: the older answer must not come last
	halved          bool       // one kind of address failed, and that was told; guarded by asking

	mu        sync.Mutex // guards all below
	pool      conf.Pool
	file, dns []conf.Worker
	given     []conf.Worker // by workers
	silent    bool          // the name has no answer, and that was told
}

func newDiscovery(log *slog.Logger, resolve resolver, changed func()) *discovery {
	return &discovery{log: log, resolve: resolve, changed: changed}
}

// take makes c the configuration, and asks its sources once, at once. The workers are as workers gives them.
func (d *discovery) take(ctx context.Context, c conf.Pool) []conf.Worker {
	d.mu.Lock()
	if c.WorkersFile != d.pool.WorkersFile {
		d.file = nil
	}
	if c.WorkersDNS != d.pool.WorkersDNS {
		d.dns, d.silent = nil, false
	}
	d.pool = c
	d.mu.Unlock()
	d.read()
	d.ask(ctx)
	return d.workers()
}

// workers is the union of all sources, one a URL: what the configuration says of a worker goes before what the file says, and
// that before the name.
func (d *discovery) workers() []conf.Worker {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.given = d.union()
	return slices.Clone(d.given)
}

// news tells whether workers would give another list than it gave last.
func (d *discovery) news() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !sameWorkers(d.union(), d.given)
}

func sameWorkers(a, b []conf.Worker) bool { return slices.EqualFunc(a, b, conf.Worker.Equal) }

func (d *discovery) union() (all []conf.Worker) {
	seen := map[string]bool{}
	for _, from := range [][]conf.Worker{d.pool.Workers, d.file, d.dns} {
		for _, w := range from {
			if !seen[w.URL] {
				seen[w.URL] = true
				all = append(all, w)
			}
		}
	}
	return all
}

// run follows the sources until ctx ends.
func (d *discovery) run(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	told := make(chan struct{}, 1)
	tell := func() {
		select {
		case told <- struct{}{}:
		default:
		}
	}
	looks := 0
	files := func() []string {
		// What was written between take and the watch's first look is a change to nobody: the second look reads once more.
		if looks++; looks == 2 {
			d.read()
			tell()
		}
		return d.files()
	}
	both.Go(func() { conf.Watch(ctx, watchPoll, files, func() { d.read(); tell() }) })
	both.Go(func() {
		for ctx.Err() == nil {
			timer := time.NewTimer(resolveEvery*9/10 + rand.N(resolveEvery/5))
			select {
			case <-ctx.Done():
			case <-timer.C:
				d.ask(ctx)
				tell()
			}
			timer.Stop()
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
			if d.news() {
				d.changed()
			}
		}
	}
}

func (d *discovery) files() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool.WorkersFile == "" {
		return nil
	}
	return []string{d.pool.WorkersFile}
}

// read takes the file up.
func (d *discovery) read() {
	d.reading.Lock()
	defer d.reading.Unlock()
	d.mu.Lock()
	path := d.pool.WorkersFile
	d.mu.Unlock()
	if path == "" {
		return
	}
	workers, err := conf.LoadWorkers(path)
	if err != nil {
		d.log.Error("workers_file refused: the workers it gave before stay", "file", path, "error", err)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if path != d.pool.WorkersFile || sameWorkers(workers, d.file) {
		return
	}
	d.file = workers
	d.log.Info("workers_file read", "file", path, "workers", len(workers))
}

// ask resolves the name.
func (d *discovery) ask(ctx context.Context) {
	d.asking.Lock()
	defer d.asking.Unlock()
	d.mu.Lock()
	name := d.pool.WorkersDNS
	d.mu.Unlock()
	if name == "" {
		return
	}
	workers, err := d.addresses(ctx, name)
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case name != d.pool.WorkersDNS || ctx.Err() != nil:
	case err != nil:
		if !d.silent {
			d.log.Warn("workers_dns has no answer: the workers it gave before stay", "name", name, "workers", len(d.dns), "error", err)
		}
		d.silent = true
	default:
		d.silent = false
		if !sameWorkers(workers, d.dns) {
			d.dns = workers
			d.log.Info("workers_dns resolved", "name", name, "workers", len(workers))
		}
	}
}

// addresses makes a worker of each address of name:port, in the order of the addresses: servers give them in any.
func (d *discovery) addresses(ctx context.Context, name string) ([]conf.Worker, error) {
	host, port, err := net.SplitHostPort(name)
	if err != nil {
		return nil, err // conf has checked it
	}
	ctx, stop := context.WithTimeout(ctx, resolveTimeout)
	defer stop()
	found, err := d.resolve(ctx, host)
	if h, ok := errors.AsType[*half](err); ok {
		known := d.known(h.is6)
		if len(known) > 0 && !d.halved {
			d.log.Warn("workers_dns has no answer for one kind of address: those it gave before stay", "name", name, "ipv6", h.is6, "workers", len(known), "error", h.err)
		}
		found, d.halved = append(found, known...), true
		err = nil
	} else if err == nil {
		d.halved = false
	}
	if err != nil {
		return nil, err
	}
	for i := range found {
		found[i] = found[i].Unmap()
	}
	slices.SortFunc(found, netip.Addr.Compare)
	found = slices.Compact(found)
	var workers []conf.Worker
	for _, a := range found[:min(len(found), maxAddresses)] {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
			continue
		}
		at := "http://" + net.JoinHostPort(a.String(), port)
		workers = append(workers, conf.WorkerAt(at))
	}
	if len(workers) == 0 {
		return nil, errNoAddress
	}
	return workers, nil
}

var errNoAddress = errors.New("daemon: the name has no address")
