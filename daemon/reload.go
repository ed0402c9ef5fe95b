package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/adapt"
	"github.com/warmpath/warmpath/daemon/admin/metrics"
	"github.com/warmpath/warmpath/daemon/admin/operator"
	"github.com/warmpath/warmpath/daemon/admin/strategies"
)

// Reload reads the configuration file and the modules again. On any error all stays as it was.
func (d *Daemon) Reload() error {
	d.reload.Lock()
	defer d.reload.Unlock()
	return d.manager.Reload(d.reloadFile)
}

// reloadFile does what Reload does. The caller holds d.reload.
func (d *Daemon) reloadFile() error {
	defer d.collectSoon()
	old := d.state.Load().conf
	c, err := d.loaded.Load(old.Path, d.apply)
	if err != nil {
		d.metrics.Reloaded(metrics.Reload{At: time.Now(), File: old.Path, Error: err.Error()})
		d.log.Error("reload refused: the configuration in force stays", "file", old.Path, "error", err)
		return err
	}
	var kept []string
	if err := d.certs.Reload(); err != nil { // it has logged that
		kept = append(kept, err.Error())
	}
	if err := d.operator.ReloadToken(); err != nil {
		d.log.Error("the operator's token in force stays", "error", err)
		kept = append(kept, err.Error())
	}
	due := conf.NeedRestart(d.atStart, c)
	if len(due) > 0 {
		d.log.Warn("reloaded, but some changed keys take effect at the next start only", "keys", due)
	}
	changed := conf.Changes(old, c)
	if more := len(changed) - maxListed; more > 0 {
		changed = append(changed[:maxListed:maxListed], fmt.Sprintf("and %d more", more))
	}
	d.metrics.Reloaded(metrics.Reload{At: time.Now(), OK: true, File: c.Path, Changed: changed, Restart: due, Kept: kept})
	d.log.Info("reloaded", "file", c.Path, "changed", changed)
	d.note(c)
	return nil
}

// note logs the notes of `warmpath check` on the file: settings that are valid and probably not meant. Not every
// operator runs the check.
func (d *Daemon) note(c *conf.Config) {
	for _, n := range conf.Notes(c) {
		d.log.Info("the file says what is hardly meant; warmpath check lists it too", "file", n.File, "line", n.Line,
			"key", n.Key, "what", n.What, "remedy", n.Remedy)
	}
}

// collectSoon has the garbage of a reload collected: a file's tree, and the modules as they were read. By itself the
// collector waits until there is as much garbage as there is memory in use. One collection serves all reloads of half a
// second. The caller holds d.reload.
func (d *Daemon) collectSoon() {
	if d.collecting == nil {
		d.collecting = time.AfterFunc(collectAfter, runtime.GC)
		return
	}
	d.collecting.Reset(collectAfter)
}

// collectAfter lets pools that a reload removed close first.
const collectAfter = 500 * time.Millisecond

// watchPoll is the time between two looks at the files. Two looks must agree, so a new module serves within a second.
const watchPoll = 250 * time.Millisecond

// Watch reloads when the files in force change, or have changed since they were loaded, until ctx ends.
func (d *Daemon) Watch(ctx context.Context) {
	d.loaded.Watch(ctx, watchPoll, &d.reload, func() *conf.Config { return d.state.Load().inForce }, func() {
		_ = d.manager.Reload(d.reloadFile) // the error is logged, and the old configuration serves on
	})
}

// apply makes c the state. Modules are loaded first, since they are what can fail; pools of a known name are kept.
// What has reload:"restart" stays that of the start, for what comes later too. The caller holds d.reload.
func (d *Daemon) apply(c *conf.Config) error {
	inForce := conf.InForce(d.atStart, c)
	epoch, err := adapt.Epoch(inForce)
	if err != nil {
		return err
	}
	loaded, err := strategies.LoadAll(d.host, c, d.log)
	if err != nil {
		return err
	}
	if err := d.front.OpenLog(c.Server.AccessLog); err != nil {
		strategies.CloseAll(loaded)
		return err
	}
	old := map[string]*pool{}
	for _, p := range d.state.Load().pools {
		old[p.name] = p
	}
	next := &state{conf: c, inForce: inForce, epoch: epoch}
	var fresh []*pool
	for i := range c.Pools {
		p, known := old[c.Pools[i].Name]
		if !known {
			p, err = newPool(c.Pools[i], inForce.Sessions, d)
			if err != nil {
				strategies.CloseAll(loaded)
				for _, f := range fresh {
					d.lmcache.Drop(f.roster)
					f.close()
				}
				return errors.Join(err, d.front.OpenLog(d.state.Load().conf.Server.AccessLog)) // all stays as it was
			}
			p.staff.Take(p.route, loaded[i])
			fresh = append(fresh, p)
		}
		next.pools = append(next.pools, p)
	}
	drains := operator.MovesFrom(d.shown())
	d.takeUp(next, loaded, fresh)
	drains.To(next.shown())
	for _, p := range next.pools {
		delete(old, p.name)
		epoch.Pools = append(epoch.Pools, p.served())
	}
	d.tier.SetOwners(len(inForce.Keys))
	epoch.Limits = d.limits.Configure(d.life, adapt.Limits(inForce), time.Now())
	d.kvCache.SetMembers(adapt.Members(&c.KVCache))
	d.state.Store(next)
	operator.SetLevel(d.level, c.Server.LogLevel)
	d.ring.Resize(c.Server.DecisionsBytes)
	d.metrics.ByWorker(c.Server.WorkerMetrics)
	d.tracer.Configure(adapt.Tracing(c), Version, d.log)
	for _, p := range old {
		d.departed.Leave(p.shown())
		d.lmcache.Drop(p.roster)
		d.tending.Go(p.retire)
	}
	return nil
}

// takeUp gives the pools that serve already their settings and strategies of next, and waits until the workers of each
// fresh one have been found up or down, and one is up: until then the old pools serve. All pools wait at the same time.
func (d *Daemon) takeUp(next *state, loaded []*strategies.Loaded, fresh []*pool) {
	var all sync.WaitGroup
	for i, p := range next.pools {
		all.Go(func() {
			switch {
			case !slices.Contains(fresh, p):
				if err := p.update(next.conf.Pools[i]); err != nil { // conf has checked the URLs
					d.log.Error("BUG: a checked pool was refused", "pool", p.name, "error", err)
				}
				p.staff.Take(p.route, loaded[i])
			case len(d.state.Load().pools) > 0:
				p.awaitUp()
			}
		})
	}
	all.Wait()
}
