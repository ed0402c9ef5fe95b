package exchange_test

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/request/epoch"
	"github.com/warmpath/warmpath/daemon/request/exchange"
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/route"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/sdk/abi"
)

const (
	healthEvery  = 2 * time.Second
	healthWait   = 2 * time.Second
	scrapeEvery  = 5 * time.Second
	grace        = 5 * time.Second // DownGrace; requests at a silent worker have three times as long
	longestBlock = 10 * time.Second
)

// fleet is one run of the model: engines, health checks and clients around the code that serves.
type fleet struct {
	t       *testing.T
	dice    dice
	began   time.Time
	server  *exchange.Server
	epoch   *epoch.Epoch
	pool    *epoch.Pool
	lives   message.Lives
	engines []*engine
	clients sync.WaitGroup
	ending  bool
	changed atomic.Bool // the pool has changed something since the last step

	mu       sync.Mutex // guards the rest, and the engines, wires and asks
	asks     map[string]*ask
	requests int
	actor    *ask // whose code has run since the last step; nil = a check's
	serving  uint16
	compared bool   // a plain request has ended that some engine failed
	breach   string // the first breach of an invariant
}

func (f *fleet) lock()              { f.mu.Lock() }
func (f *fleet) unlock()            { f.mu.Unlock() }
func (f *fleet) now() time.Duration { return time.Since(f.began) }

// dice is a fleet's chance. No two goroutines of a fleet run at the same instant of its clock, so that the order in which
// they draw is the same in each run.
type dice struct {
	mu  sync.Mutex // guards rnd
	rnd *rand.Rand
}

func (d *dice) float() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.Float64()
}

func (f *fleet) draw(n int) int        { return int(f.dice.float() * float64(n)) }
func (f *fleet) chance(p float64) bool { return f.dice.float() < p }

// between draws a time between two numbers of seconds, so fine that no two events come at the same instant.
func (f *fleet) between(least, most float64) time.Duration {
	return time.Duration((least + (most-least)*f.dice.float()) * float64(time.Second))
}

func (f *fleet) jitter(d time.Duration) time.Duration { return d + time.Duration(f.draw(1e6)) }

// after runs a change of the world later, unless the fleet has ended by then.
func (f *fleet) after(d time.Duration, change func()) {
	time.AfterFunc(f.jitter(d), func() {
		f.lock()
		defer f.unlock()
		if !f.ending {
			f.step(nil)
			change()
		}
	})
}

// store keeps the sessions of all fleets: there are none.
var store = sync.OnceValue(func() *tier.Store {
	s, err := tier.New(tier.Config{MaxBytes: 1 << 20})
	if err != nil {
		panic(err)
	}
	return s
})

// leastBusy is the strategy of all fleets.
var leastBusy = sync.OnceValue(func() *host.Strategy {
	return host.Native("least-busy", 0, func(_ *abi.Header, rows []abi.Row, _ []uint32) uint64 {
		best := 0
		for i := range rows {
			a, b := &rows[i], &rows[best]
			if a.InFlight < b.InFlight || a.InFlight == b.InFlight && a.Sent < b.Sent {
				best = i
			}
		}
		return uint64(best)
	})
})

var everybody, _ = (*gate.Keys)(nil).Check("", "")

// newFleet makes a fleet of n engines, all of them up. Call it in a bubble of synctest.
func newFleet(t *testing.T, seed uint64, n int) *fleet {
	f := &fleet{t: t, dice: dice{rnd: rand.New(rand.NewPCG(seed, 0))}, began: time.Now(), asks: map[string]*ask{}}
	places, clients := map[string]*engine{}, map[string]*upstream.Client{}
	c := worker.Config{RetryBudget: .2, DownGrace: grace, HealthInterval: healthEvery, ScrapeInterval: scrapeEvery,
		OnChange: func() { f.changed.Store(true) }}
	for i := range n {
		e := &engine{fleet: f, place: i, listens: true, born: -time.Hour, service: f.between(.02, .8), wires: map[*wire]bool{}}
		f.engines = append(f.engines, e)
		url := fmt.Sprint("http://w", i)
		places[url] = e
		c.Workers = append(c.Workers, worker.Spec{ID: fmt.Sprint("w", i), URL: url, DataParallel: 1})
		var err error
		if clients[url], err = upstream.New(upstream.Config{URL: url, Dial: e.dial, IdleTimeout: 1}); err != nil {
			t.Fatal(err)
		}
	}
	c.Watcher = &watcher{fleet: f, places: places}
	c.After = func(d time.Duration, call func(time.Time)) { time.AfterFunc(d, func() { call(time.Now()) }) }
	f.pool = &epoch.Pool{Clients: new(epoch.Clients), Patterns: allModels{}, HeaderTimeout: never}
	f.pool.Pool = route.New(route.Config{Name: "p", Sessions: session.On(store(), session.Config{Pool: "p"}), Began: f.began,
		Workers: c, Reason: func(string, uint16) string { return "" }, Clock: time.Now, Secret: route.Secret{1}})
	f.pool.Strategy.Replace(leastBusy())
	f.pool.Clients.Set(clients)
	f.epoch = &epoch.Epoch{Pools: []*epoch.Pool{f.pool}}
	f.server = exchange.New(exchange.Config{Log: slog.New(slog.DiscardHandler), Meter: silentMeter{}})
	for _, e := range f.engines {
		f.pool.Workers.Healthy(e.number, time.Now())
		e.illOK = true
		e.follow()
	}
	f.lock()
	f.step(nil)
	f.unlock()
	return f
}

// end waits for the clients and ends all else.
func (f *fleet) end() {
	f.clients.Wait()
	f.lock()
	f.ending = true
	f.unlock()
}

// watcher asks for checks as the pool wants them.
type watcher struct {
	fleet  *fleet
	places map[string]*engine
}

func (w *watcher) Watch(id uint64, url, _ string) { w.places[url].number = id }
func (w *watcher) WatchHealth(uint64)             {}
func (w *watcher) Unwatch(uint64)                 {}

// CheckSoon is called with the pool's lock held, in the course of a step.
func (w *watcher) CheckSoon(id uint64)  { w.soon(id, (*engine).check) }
func (w *watcher) ScrapeSoon(id uint64) { w.soon(id, (*engine).scrape) }
func (w *watcher) ListSoon(uint64)      {}

func (w *watcher) soon(id uint64, what func(*engine)) {
	for _, e := range w.fleet.engines {
		if e.number == id {
			time.AfterFunc(210*time.Millisecond+time.Duration(e.place)*time.Microsecond, func() { e.run(what) })
		}
	}
}

// follow checks the engine's health and reads its metrics from now on.
func (e *engine) follow() {
	e.again(healthEvery, (*engine).check)
	e.again(scrapeEvery, (*engine).scrape)
}

// again runs a question at an interval. A worker that is not up is checked more often.
func (e *engine) again(every time.Duration, what func(*engine)) {
	if !e.pool.Workers.Phase(e.number, time.Now()).Up && every == healthEvery {
		every = 500 * time.Millisecond
	}
	time.AfterFunc(every*9/10+e.between(0, .2*every.Seconds()), func() {
		if e.run(what) {
			e.again(every, what)
		}
	})
}

// run asks one question, and returns false at the fleet's end.
func (e *engine) run(what func(*engine)) bool {
	e.lock()
	defer e.unlock()
	if e.ending {
		return false
	}
	e.step(nil)
	what(e)
	e.step(nil)
	return true
}

// check is one health check.
func (e *engine) check() {
	now, workers := time.Now(), e.pool.Workers
	switch {
	case !e.listens:
		e.illOK = false
		workers.Dead(e.number, "/health: connection refused", now)
	case e.now() < e.blocked || e.mood == mute:
		began := e.died
		e.after(healthWait, func() {
			if e.died == began && e.listens { // else the connection breaks: as late as this
				e.fellLate()
			}
		})
	case e.ill > 0:
		e.ill--
		e.fellIll()
	default:
		e.illOK, e.lates = true, 0
		workers.Healthy(e.number, now)
	}
}

// scrape reads the engine's page of metrics.
func (e *engine) scrape() {
	up := e.pool.Workers.Phase(e.number, time.Now()).Up
	if !up || !e.listens || e.now() < e.blocked {
		return
	}
	e.pages++
	e.shownAsleep = e.mood == asleep
	m := worker.Metrics{Process: 1e9 + e.born.Seconds(), Running: len(e.wires), Asleep: e.mood == asleep}
	if e.twin && e.pages%2 == 0 {
		m.Process -= 100
	}
	e.pool.Workers.Scraped(e.number, worker.Page{Metrics: m}, time.Now())
}

// silentMeter counts nothing.
type silentMeter struct{}

func (silentMeter) Prefilled(string, journal.Prefilled)                      {}
func (silentMeter) Continued(string, journal.Continuation)                   {}
func (silentMeter) Hinted(string, route.HintResult)                          {}
func (silentMeter) FellBack(string, string, string)                          {}
func (silentMeter) Foreign(string, string)                                   {}
func (silentMeter) Arrived(*message.Seen)                                    {}
func (silentMeter) Picked(*message.Seen)                                     {}
func (silentMeter) Refused(*message.Seen, message.Fault, int, time.Duration) {}
func (silentMeter) SessionRefused(string, string)                            {}
func (silentMeter) Placed(*message.Seen, time.Duration)                      {}
func (silentMeter) Retried(string, string)                                   {}
func (silentMeter) Waited(*message.Seen, journal.Waited)                     {}
func (silentMeter) Shed(string, string)                                      {}
func (silentMeter) FirstByte(*message.Seen)                                  {}
func (silentMeter) Ended(*message.Seen, journal.End)                         {}

// allModels is the pattern "*".
type allModels struct{}

func (allModels) Serves(string) bool { return true }
func (allModels) Names(string) bool  { return false }
