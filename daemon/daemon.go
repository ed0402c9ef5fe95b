package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/warmpath/warmpath/cache/tier"
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/listen"
	"github.com/warmpath/warmpath/daemon/sagemaker"
	"github.com/warmpath/warmpath/host"
)

// Daemon is the whole process, as main runs it and tests start it on port 0.
type Daemon struct {
	log     *slog.Logger
	level   *slog.LevelVar // of log
	host    *host.Host
	metrics *metrics

	access accessLog
	opens  sagemaker.Opens
	tier   *tier.Store // what outlives a request, and with Redis the process: sessions, and what strategies remember

	state     atomic.Pointer[state]
	draining  atomic.Bool
	inFlight  atomic.Int64            // requests from the clients' side
	starved   atomic.Int64            // the second of the last line of noDescriptor
	endedLate atomic.Int64            // requests that ended in the drain
	idle      sync.Map                // of *listen.Conn: those that wait for a request after a stream
	life      context.Context         // of all requests; ends with errDraining when the drain is over
	cut       context.CancelCauseFunc // of life
	reload    sync.Mutex              // one change of state at a time
	tending   sync.WaitGroup          // of what runs as long as life
	lives     lives                   // of the requests
	atStart   *conf.Config            // whose listeners and limits are in force
	room      atomic.Int64            // the last that a line of roomFor told
	fitted    atomic.Bool             // frontL is there
	departed  *departed

	collecting *time.Timer // see collectSoon; guarded by reload

	frontApp, adminApp *fiber.App
	frontL             *listen.Listener
	adminL             net.Listener
}

// state is what a reload replaces.
type state struct {
	conf  *conf.Config
	front *front
	pools []*pool // in the order of the file
}

// Version is what this binary calls itself; see Makefile.
var Version = "dev"

// New loads the modules, starts watching the workers and binds both listeners. Nothing is served before Run. log's handler
// should let all levels through: server.log_level, which a reload may change, decides.
func New(c *conf.Config, log *slog.Logger) (*Daemon, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	level := new(slog.LevelVar)
	setLevel(level, c.Server.LogLevel)
	log = slog.New(leveled{Handler: log.Handler(), level: level})
	store, err := newStore(c.Cache, log)
	if err != nil {
		return nil, err
	}
	kv := store.Local(strategyKeys, strategyBytes)
	h, err := host.New(context.Background(), host.Config{CacheDir: c.Server.CacheDir(), Log: log, KV: kv})
	if err != nil {
		store.Close()
		return nil, err
	}
	d := &Daemon{log: log, level: level, host: h, tier: store, metrics: newMetrics(), departed: newDeparted(), atStart: c}
	d.life, d.cut = context.WithCancelCause(context.Background())
	context.AfterFunc(d.life, func() { d.lives.cut(context.Cause(d.life)) })
	d.tending.Go(func() { store.Run(d.life) })
	d.tending.Go(func() { kv.Run(d.life) })
	d.state.Store(&state{conf: c})
	d.tending.Go(func() { d.tend(d.life) })
	if err := d.start(c); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Daemon) start(c *conf.Config) error {
	d.reload.Lock()
	err := d.apply(c)
	d.reload.Unlock()
	if err != nil {
		return err
	}
	d.metrics.registry.MustRegister(collector{d})
	most, forAdmin := d.roomFor(c)
	d.frontApp = d.clients(c.Server, c.Server.MaxConnections) // the listener may let in fewer
	app, err := d.admin(c.Server, forAdmin)
	if err != nil {
		return fmt.Errorf("daemon: server.admin_token_file cannot be read: %w", err)
	}
	d.adminApp = app
	raw, err := net.Listen("tcp", c.Server.Listen)
	if err != nil {
		return fmt.Errorf("daemon: cannot listen for clients; change server.listen or free the port: %w", err)
	}
	if d.frontL, err = listen.New(raw, listen.Config{WriteTimeout: c.Server.WriteTimeout, MaxConns: most,
		CertFile: c.Server.TLSCertFile, KeyFile: c.Server.TLSKeyFile, Log: d.log}); err != nil {
		raw.Close()
		return fmt.Errorf("daemon: %w", err)
	}
	if raw, err = net.Listen("tcp", c.Server.Admin); err != nil {
		return fmt.Errorf("daemon: cannot listen for the operator; change server.admin or free the port: %w", err)
	}
	d.adminL = listen.NewPatient(raw, d.log)
	d.fitted.Store(true)
	return nil
}

// Addr is where clients are served, host:port.
func (d *Daemon) Addr() string { return d.frontL.Addr().String() }

// AdminAddr is where the operator is served.
func (d *Daemon) AdminAddr() string { return d.adminL.Addr().String() }

// Run serves until ctx ends, then drains: /ready says 503, no connection is accepted, open answers run to their end within
// server.drain_timeout; then streams are ended with an error event. Its error is nil after a clean drain.
func (d *Daemon) Run(ctx context.Context) error {
	failed := make(chan error, 2)
	go func() { failed <- d.frontApp.Listener(d.frontL) }()
	go func() { failed <- d.adminApp.Listener(d.adminL) }()
	d.log.Info("serving", "version", Version, "pid", os.Getpid(), "listen", d.Addr(), "admin", d.AdminAddr(),
		"tls", d.state.Load().conf.Server.TLSCertFile != "", "strategies", d.strategies())
	select {
	case err := <-failed:
		return fmt.Errorf("daemon: a listener ended: %w", err)
	case <-ctx.Done():
	}
	d.draining.Store(true)
	d.idle.Range(func(conn, _ any) bool { conn.(*listen.Conn).Close(); return true })
	limit := d.state.Load().conf.Server.DrainTimeout
	d.log.Info("draining", "timeout", limit, "in_flight", d.inFlight.Load())
	began := time.Now()
	end := began.Add(limit)
	err := d.shutdown(limit)
	if d.awaitEnd(end); d.inFlight.Load() > 0 { // fasthttp does not know of streams
		err = fmt.Errorf("daemon: %d answers were still open after server.drain_timeout (%v)", d.inFlight.Load(), limit)
		d.cut(errDraining)
		d.awaitEnd(time.Now().Add(lastWords))
	} else if errors.Is(err, context.DeadlineExceeded) {
		err = nil // only connections without a request were open
	}
	if err == nil {
		d.log.Info("drained", "after", time.Since(began), "requests_ended", d.endedLate.Load())
	}
	_ = d.adminApp.ShutdownWithTimeout(time.Second) // only scrapes are lost
	return err
}

// shutdown closes the listener and waits until fasthttp has no connection left; but no longer than a second after the last
// request, for a browser opens connections ahead, and a half-sent header may stay one.
func (d *Daemon) shutdown(limit time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- d.frontApp.ShutdownWithTimeout(limit) }()
	idle := 0
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(50 * time.Millisecond):
		}
		if idle++; d.inFlight.Load() > 0 {
			idle = 0
		}
		if idle >= 20 {
			return nil
		}
	}
}

// lastWords is for the error events of streams that outlive the drain.
const lastWords = 2 * time.Second

func (d *Daemon) awaitEnd(end time.Time) {
	for d.inFlight.Load() > 0 && time.Now().Before(end) {
		time.Sleep(10 * time.Millisecond)
	}
}

// Close frees everything. Run must have returned.
func (d *Daemon) Close() {
	d.cut(errDraining)
	if d.frontL != nil {
		d.frontL.Close()
	}
	if d.adminL != nil {
		d.adminL.Close()
	}
	d.reload.Lock()
	defer d.reload.Unlock()
	d.tending.Wait()
	d.access.close(d.log)
	for _, p := range d.state.Load().pools {
		p.close()
	}
	if err := d.host.Close(context.Background()); err != nil {
		d.log.Warn("the sandbox did not close cleanly", "error", err)
	}
	if err := d.tier.Close(); err != nil {
		d.log.Warn("the connections to Redis did not close cleanly", "error", err)
	}
}

// What a strategy may keep in the store.
const (
	strategyKeys  = 10_000
	strategyBytes = 8 << 20
)

func newStore(c conf.Cache, log *slog.Logger) (*tier.Store, error) {
	url, err := c.RedisURL()
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	store, err := tier.New(tier.Config{MaxBytes: c.MaxBytes, Redis: url, Timeout: c.Timeout, Log: log})
	if err != nil || url == "" {
		return store, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), readAheadTime)
	defer cancel()
	if n, err := store.Load(ctx); err != nil {
		log.Warn("sessions are not read ahead; each is looked up when it comes", "error", err)
	} else {
		log.Info("sessions read ahead", "values", n)
	}
	return store, nil
}

// readAheadTime bounds what a start waits for Redis: some 100,000 sessions.
const readAheadTime = 2 * time.Second

// poolFor is the first pool that serves the model. A request that names none goes to the first pool.
func (d *Daemon) poolFor(model string) *pool {
	for _, p := range d.state.Load().pools {
		if model == "" || p.serves(model) {
			return p
		}
	}
	return nil
}

// saturated tells whether no pool has a worker that could take one more request.
func (d *Daemon) saturated() bool {
	for _, p := range d.state.Load().pools {
		if !p.workers.Saturated() {
			return false
		}
	}
	return true
}

func (d *Daemon) explain() bool { return d.state.Load().conf.Server.Explain }
