package daemon

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/operator"
	"github.com/warmpath/warmpath/host"
	"github.com/warmpath/warmpath/plugins"
)

// Reload reads the configuration file and the modules again. On any error all stays as it was.
func (d *Daemon) Reload() error {
	d.reload.Lock()
	defer d.reload.Unlock()
	defer d.collectSoon()
	old := d.state.Load().conf
	c, err := conf.Load(old.Path)
	if err == nil {
		err = d.apply(c)
	}
	if err != nil {
		d.metrics.ReloadSucceeded(false)
		d.log.Error("reload refused: the configuration in force stays", "file", old.Path, "error", err)
		return err
	}
	d.metrics.ReloadSucceeded(true)
	if err := d.front.ReloadTLS(); err != nil {
		d.log.Error("the certificate in force stays", "error", err)
	}
	if keys := conf.NeedRestart(old, c); len(keys) > 0 {
		d.log.Warn("reloaded, but some changed keys take effect at the next start only", "keys", keys)
	}
	changed := conf.Changes(old, c)
	if more := len(changed) - maxTold; more > 0 {
		changed = append(changed[:maxTold:maxTold], fmt.Sprintf("and %d more", more))
	}
	d.log.Info("reloaded", "file", c.Path, "changed", changed)
	return nil
}

// collectSoon has the garbage of a reload collected: a file's tree, and the modules' memories of 16 MB each, old and
// new. By itself the collector waits until there is as much garbage as there is memory in use, and a few reloads
// triple the process. One collection serves all reloads of half a second. The caller holds d.reload.
func (d *Daemon) collectSoon() {
	if d.collecting == nil {
		d.collecting = time.AfterFunc(collectAfter, runtime.GC)
		return
	}
	d.collecting.Reset(collectAfter)
}

// collectAfter lets pools that a reload removed close first.
const collectAfter = 500 * time.Millisecond

// watchPoll is the time between two looks at the files. A change counts when two looks agree, so that a new module
// serves within a second; reading a few files of 2 MB costs well under a millisecond.
const watchPoll = 250 * time.Millisecond

// Watch reloads when the file or a module changes, until ctx ends.
func (d *Daemon) Watch(ctx context.Context) {
	conf.Watch(ctx, watchPoll, func() []string {
		c := d.state.Load().conf
		return append([]string{c.Path}, c.WatchedFiles()...)
	}, func() { _ = d.Reload() }) // the error is logged, and the old configuration serves on
}

// apply makes c the state. Modules are loaded first, since they are what can fail; pools of a known name are kept.
// The caller holds d.reload.
func (d *Daemon) apply(c *conf.Config) error {
	epoch, err := newEpoch(c)
	if err != nil {
		return err
	}
	loaded, err := d.loadAll(c)
	if err != nil {
		return err
	}
	if err := d.front.OpenLog(c.Server.AccessLog); err != nil {
		closeAll(loaded, nil)
		return err
	}
	old := map[string]*pool{}
	for _, p := range d.state.Load().pools {
		old[p.name] = p
	}
	next := &state{conf: c, epoch: epoch}
	var fresh []*pool
	for i := range c.Pools {
		p, known := old[c.Pools[i].Name]
		if !known {
			p, err = newPool(c.Pools[i], c.Sessions, d)
			if err != nil {
				closeAll(loaded[i:], fresh)
				return err
			}
			p.route.Strategy.Replace(loaded[i])
			fresh = append(fresh, p)
		}
		next.pools = append(next.pools, p)
	}
	for i, p := range next.pools {
		if _, known := old[p.name]; !known {
			continue
		}
		delete(old, p.name)
		if err := p.update(c.Pools[i]); err != nil { // conf has checked the URLs
			d.log.Error("BUG: a checked pool was refused", "pool", p.name, "error", err)
		}
		p.route.Strategy.Replace(loaded[i])
	}
	if len(d.state.Load().pools) > 0 { // the old pools serve until the new ones can
		for _, p := range fresh {
			p.awaitUp()
		}
	}
	for _, p := range next.pools {
		epoch.Pools = append(epoch.Pools, p.served())
	}
	d.state.Store(next)
	operator.SetLevel(d.level, c.Server.LogLevel)
	for _, p := range old {
		d.departed.Leave(p.shown())
		d.lmcache.Drop(p.roster)
		go p.retire()
	}
	return nil
}

func closeAll(strategies []*host.Strategy, pools []*pool) {
	for _, s := range strategies {
		s.Close(context.Background())
	}
	for _, p := range pools {
		p.close()
	}
}

// loadAll loads the strategy of every pool, or none.
func (d *Daemon) loadAll(c *conf.Config) ([]*host.Strategy, error) {
	var loaded []*host.Strategy
	for i := range c.Pools {
		s, err := d.load(c, &c.Pools[i])
		if err != nil {
			closeAll(loaded, nil)
			return nil, err
		}
		loaded = append(loaded, s)
	}
	return loaded, nil
}

// load loads one pool's strategy: the built-in of its name, or the module at its path.
func (d *Daemon) load(c *conf.Config, p *conf.Pool) (*host.Strategy, error) {
	sc := c.StrategyOf(p)
	wrong := func(err error) error { // with the line of the table that names the module
		return conf.Problems{c.StrategyProblem(p, err.Error())}
	}
	wasm, err := plugins.Read(p.Strategy, sc.Path)
	if err != nil {
		return nil, wrong(err)
	}
	s, err := d.host.Load(context.Background(), p.Strategy, wasm, host.Options{
		Values: c.OptionValues(p), Allow: sc.Allow, Fuel: sc.Fuel,
		MemoryBytes: sc.MemoryMB << 20, PickTime: sc.PickTimeout, Pool: p.Name})
	if err != nil {
		return nil, wrong(err)
	}
	return s, nil
}

// CheckModules loads every strategy that c names and throws it away: what `warmpath check` adds to conf's checks.
func CheckModules(c *conf.Config) error {
	h, err := host.New(context.Background(), host.Config{CacheDir: c.Server.CacheDir()})
	if err != nil {
		return err
	}
	defer h.Close(context.Background())
	loaded, err := (&Daemon{host: h}).loadAll(c)
	closeAll(loaded, nil)
	return err
}

// A file names the built-in strategies, and conf, which checks it, imports nothing of ours.
func init() { conf.Builtins = plugins.Names() }
