package vllmsim

import (
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/lab/vllmsim/engine"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/events"
	"github.com/warmpath/warmpath/daemon/lab/vllmsim/lmworker"
)

// driver runs an engine by the wall clock. One goroutine a worker, one timer: it wakes when a stream is due to be shown
// something, and the engine then computes every step that has ended by then. So the sequence of steps is exact however
// late it wakes; only the showing is coarse.
type driver struct {
	wake chan struct{}
	stop chan struct{}
	quit sync.Once
	over sync.WaitGroup

	sinks

	mu     sync.Mutex // guards all below, and the sequences of the engine
	engine *engine.Engine
	clock  clock
	labels labels // of the weights that have computed here
	closed bool
}

// sinks take what changes in the caches; each may be nil.
type sinks struct {
	events  *events.Publisher
	lmcache *lmworker.Worker
}

// publish sends the changes of one step. What LMCache holds is not in vLLM's events.
func (s sinks) publish(changes []engine.Change) {
	if s.lmcache != nil {
		s.lmcache.Publish(changes)
		changes = slices.DeleteFunc(changes, func(c engine.Change) bool { return c.Medium == engine.OnCPU })
	}
	if s.events != nil && len(changes) > 0 {
		s.events.Publish(changes)
	}
}

func (s sinks) close() {
	s.events.Close()
	s.lmcache.Close()
}

// newDriver starts an engine that publishes its changes. The driver closes the sinks.
func newDriver(cfg Config, to sinks) (*driver, error) {
	e, err := engine.New(cfg.engine())
	if err != nil {
		return nil, err
	}
	d := &driver{
		wake:   make(chan struct{}, 1),
		stop:   make(chan struct{}),
		sinks:  to,
		engine: e,
		clock:  newClock(cfg.Speed),
	}
	d.over.Add(1)
	go d.run()
	return d, nil
}

func (d *driver) run() {
	defer d.over.Done()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d.mu.Lock()
		d.advance()
		wait := d.nextWake()
		d.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-d.wake:
		case <-timer.C:
		case <-d.stop:
			return
		}
	}
}

// advance computes what has happened by now and shows it. It wants mu.
func (d *driver) advance() {
	if d.closed {
		return
	}
	happened := d.engine.Advance(d.clock.now())
	for _, b := range d.engine.TakeBatches() {
		d.publish(b.Changes)
	}
	show(happened)
}

// nextWake returns the wall time until there is something to show. It wants mu.
func (d *driver) nextWake() time.Duration {
	at, ok := d.engine.NextEvent()
	if !ok || d.clock.frozen {
		return time.Hour
	}
	return d.clock.until(at)
}

// show publishes what happened, each event to the choice that it is about.
func show(events []engine.Event) {
	for _, ev := range events {
		ev.Seq.Owner.(*choice).show()
	}
}

// rouse wakes the goroutine before its time.
func (d *driver) rouse() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// submit puts choices into the waiting queue. A closed driver aborts them.
func (d *driver) submit(choices []*choice) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		for _, c := range choices {
			c.abort()
		}
		return
	}
	for _, c := range choices {
		if d.engine.Submit(d.clock.now(), &c.seq) != nil {
			c.abort() // never: checker.limit refuses what does not fit
		}
	}
	d.mu.Unlock()
	d.rouse()
}

// cancel frees what the choices hold; those that have ended are left alone.
func (d *driver) cancel(choices []*choice) {
	d.mu.Lock()
	d.advance()
	changed := false
	for _, c := range choices {
		events := d.engine.Cancel(&c.seq)
		changed = changed || len(events) > 0
		show(events)
	}
	d.mu.Unlock()
	if changed {
		d.rouse()
	}
}

// release frees the blocks that a choice has kept for another worker, and returns how many.
func (d *driver) release(c *choice) int {
	d.mu.Lock()
	d.advance()
	n := d.engine.Release(&c.seq)
	d.mu.Unlock()
	d.rouse()
	return n
}

// kept returns the blocks that a choice has kept for another worker.
func (d *driver) kept(c *choice) []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.Kept(&c.seq)
}

// resetCache empties the cache, and with external the tiers behind it. It returns false if sequences hold blocks,
// unless preempt sends them back to wait.
func (d *driver) resetCache(preempt, external bool) bool {
	d.mu.Lock()
	d.advance()
	ok := !d.closed && d.engine.ResetCache(preempt, external)
	d.mu.Unlock()
	d.rouse()
	return ok
}

// freeze begins or ends a stall.
func (d *driver) freeze(on bool) {
	d.mu.Lock()
	d.clock.freeze(on)
	d.mu.Unlock()
	d.rouse()
}

// pause holds sequences from now on, and with abort ends those that run or wait.
func (d *driver) pause(p engine.Pause, abort bool) {
	d.mu.Lock()
	d.advance()
	d.engine.Pause(p)
	if abort {
		show(d.engine.CancelAll())
	}
	d.mu.Unlock()
	d.rouse()
}

// resume ends a pause.
func (d *driver) resume() {
	d.mu.Lock()
	d.advance()
	d.engine.Resume(d.clock.now())
	d.mu.Unlock()
	d.rouse()
}

// paused reports whether the engine is paused, and whether it has come to rest.
func (d *driver) paused() (paused, rests bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance()
	return d.engine.Paused() != engine.Going, d.closed || d.engine.Rests()
}

// setWeights has other weights compute from now on, under that label.
func (d *driver) setWeights(n uint32, label string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance()
	d.engine.SetWeights(n)
	d.labels.set(n, label)
}

// abort ends all that runs or waits with finish_reason "abort".
func (d *driver) abort() {
	d.mu.Lock()
	d.advance()
	show(d.engine.CancelAll())
	d.mu.Unlock()
	d.rouse()
}

// close ends the goroutine, aborts what is left and closes the sockets of the events.
func (d *driver) close() {
	d.quit.Do(func() { close(d.stop) })
	d.over.Wait()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	show(d.engine.CancelAll())
	d.sinks.close()
}

// stats returns what the engine has done by now, and its uptime.
func (d *driver) stats() (engine.Stats, time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.advance()
	return d.engine.Stats(), d.clock.uptime()
}

// lastStats returns what the engine had done when it was last advanced.
func (d *driver) lastStats() engine.Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.engine.Stats()
}

// labels are the versions under which weights have computed, by their numbers. The driver guards them.
type labels map[uint32]string

func (l *labels) set(n uint32, label string) {
	if *l == nil {
		*l = labels{}
	}
	(*l)[n] = label
}

// versions returns the versions of weights.
func (d *driver) versions(first, last uint32) (a, b string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.labels[first], d.labels[last]
}
