package probe

import (
	"context"
	"sync"
	"sync/atomic"

	"golang.org/x/time/rate"
)

// Prober asks the workers that it was given for health, models and metrics. Make it with New; it is safe for concurrent
// use. Its methods never wait for a worker and never call the sink, so a sink may call them with its own lock held.
type Prober struct {
	asker atomic.Pointer[asker]
	loops sync.WaitGroup

	mu      sync.Mutex // guards all below
	run     context.Context
	sink    Sink
	targets map[uint64]*target
}

// pace bounds how many questions a prober begins in a second. A question costs .5 ms of processor time. Without a bound
// the first health checks of 10,000 workers, and those of workers that are down, take all of it. Their answers are late
// then, and healthy workers count as down.
const pace = 1000

// New makes a prober. It sends nothing until Run.
func New(c Config) *Prober {
	p := &Prober{targets: map[uint64]*target{}}
	p.asker.Store(newAsker(c, rate.NewLimiter(pace, pace)))
	return p
}

// Configure replaces intervals, deadlines, key and authorities. They are in force at once: a loop that sleeps by an old
// interval wakes up. Without a change none does: three loops of each of 10,000 workers would ask for one lock at once.
func (p *Prober) Configure(c Config) {
	was := p.asker.Load()
	if c.Client == nil && c.TLS == was.TLS {
		c.Client = was.Client
	}
	c = c.withDefaults()
	if c == was.Config {
		return
	}
	next := newAsker(c, was.pace)
	was = p.asker.Swap(next)
	close(was.replaced)
	if was.Client != next.Client {
		was.Client.CloseIdleConnections()
	}
}

// Run asks the workers and hands the answers to sink until ctx ends. It returns when the last question has ended.
func (p *Prober) Run(ctx context.Context, sink Sink) {
	p.mu.Lock()
	p.run = ctx
	p.sink = sink
	for _, t := range p.targets {
		p.begin(t, t.followHealth, t.followModels, t.followMetrics)
	}
	p.mu.Unlock()
	<-ctx.Done()
	p.mu.Lock()
	p.run = nil
	p.mu.Unlock()
	p.loops.Wait()
}

// Watch begins to ask the worker at url. metrics is the URL of its metrics. Both may hold credentials.
func (p *Prober) Watch(id uint64, url, metrics string) {
	t := &target{id: id, url: url, metrics: metrics, asker: &p.asker,
		check: make(chan struct{}, 1), list: make(chan struct{}, 1), scrape: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets[id] = t
	p.begin(t, t.followHealth, t.followModels, t.followMetrics)
}

// WatchHealth asks a worker for nothing but its health from now on: it was removed, but requests are still in flight
// there.
func (p *Prober) WatchHealth(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.targets[id]; t != nil {
		t.end()
		p.begin(t, t.followHealthAlone)
	}
}

// Unwatch stops all questions to a worker.
func (p *Prober) Unwatch(id uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.targets[id]; t != nil {
		t.end()
		delete(p.targets, id)
	}
}

// CheckSoon asks for a health check before the interval is over.
func (p *Prober) CheckSoon(id uint64) { p.soon(id, func(t *target) chan struct{} { return t.check }) }

// ScrapeSoon asks for a read of the metrics before the interval is over.
func (p *Prober) ScrapeSoon(id uint64) { p.soon(id, func(t *target) chan struct{} { return t.scrape }) }

// ListSoon asks for a reading of the models that begins after the call.
func (p *Prober) ListSoon(id uint64) { p.soon(id, func(t *target) chan struct{} { return t.list }) }

func (p *Prober) soon(id uint64, of func(*target) chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t := p.targets[id]; t != nil {
		signal(of(t))
	}
}

// begin starts a target's loops if the prober runs. The caller holds p.mu.
func (p *Prober) begin(t *target, loops ...func(context.Context, Sink)) {
	if p.run == nil {
		return
	}
	ctx, stop := context.WithCancel(p.run)
	t.stop = stop
	for _, follow := range loops {
		sink := p.sink
		p.loops.Go(func() { follow(ctx, sink) })
	}
}

// end stops a target's loops.
func (t *target) end() {
	if t.stop != nil {
		t.stop()
	}
}

// signal wakes the goroutine that waits on c, or the next one that will.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
