package operator

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/route"
	"github.com/warmpath/warmpath/daemon/worker"
)

// Why a pool cannot serve. Clients see these words on /ready: they name no worker and no model.
const (
	WhyStarting = "no worker has had its first health check yet"
	WhyEmpty    = "no worker is up"
	WhyPanics   = "no worker is up; requests go to workers that are not (panic = true)"
	WhyUnfit    = "no worker lists a model that the pool's patterns fit"
)

// Pool is a pool as an operator sees it.
type Pool struct {
	*route.Pool
	Models []string // the patterns of the configuration
	Serves func(model string) bool
	Panic  bool // requests go to workers that are not up when none is
}

// maxListed bounds the lists in log lines.
const maxListed = 32

// whyNot says why a pool cannot serve, "" if it can. A worker whose models have not been heard yet may have any.
func (p *Pool) whyNot(stats []worker.Stats) string {
	up, starting := 0, false
	for _, s := range stats {
		starting = starting || s.State == worker.Starting
		if !s.Up {
			continue
		}
		up++
		if s.Models == nil || slices.ContainsFunc(s.Models, p.Serves) {
			return ""
		}
	}
	switch {
	case up > 0:
		return WhyUnfit
	case starting:
		return WhyStarting
	}
	return WhyEmpty
}

// panics tells whether a pool without a worker that is up serves all the same: panic = true, and a worker that was not asked to
// drain. A load balancer that took the router away then would take away the last resort.
func (p *Pool) panics(stats []worker.Stats) bool {
	return p.Panic && slices.ContainsFunc(stats, func(s worker.Stats) bool { return !s.Drained })
}

// listed are the models that the pool's workers list, for an operator who looks for a name's spelling.
func listed(stats []worker.Stats) (models []string) {
	for _, s := range stats {
		for _, m := range s.Models {
			if m = gate.Cut(m); s.Up && len(models) < maxListed && !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	return models
}

// Vigil logs when a pool loses its last worker, or has none that lists what it is to serve, and when that is over.
type Vigil struct {
	log *slog.Logger

	mu    sync.Mutex // guards all below; held while a line is written, so that the lines stand in order
	empty bool
	unfit string // the models that were named
}

// NewVigil logs to log, which has the pool's name.
func NewVigil(log *slog.Logger) *Vigil { return &Vigil{log: log} }

// Look logs what has changed since the last look. Call it on each change of a worker, and once a second, as models are listed without
// one.
func (v *Vigil) Look(p *Pool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	stats := p.Workers.Stats(time.Now())
	v.noteEmpty(p, stats)
	unfit := ""
	if p.whyNot(stats) == WhyUnfit {
		unfit = strings.Join(listed(stats), ", ")
	}
	if unfit == v.unfit {
		return
	}
	v.unfit = unfit
	if unfit == "" {
		v.log.Info("a worker lists a model that the pool's patterns fit")
		return
	}
	v.log.Warn("no worker lists a model that the pool's patterns fit: its requests get 404; correct models of the pool, or "+
		"--served-model-name of the workers", "patterns", p.Models, "they_list", listed(stats))
}

// noteEmpty logs the last worker's fall or drain. A worker whose breaker lets one request try it is not up yet.
func (v *Vigil) noteEmpty(p *Pool, stats []worker.Stats) {
	is := func(state worker.Standing) bool {
		return slices.ContainsFunc(stats, func(s worker.Stats) bool { return s.State == state })
	}
	switch {
	case is(worker.Ready):
		if v.empty {
			v.empty = false
			v.log.Info("the pool has a worker again")
		}
	case !is(worker.Starting) && !v.empty:
		v.empty = true
		var why []string
		for _, s := range stats[:min(len(stats), maxListed)] {
			line := s.ID + ": " + s.State.String()
			if s.State == worker.Down && !s.ErrorOver && s.LastError != "" {
				line += ": " + s.LastError
			}
			why = append(why, line)
		}
		if p.Panic {
			v.log.Error("the pool has no worker that is up: its requests go to one that is not (panic = true)", "workers", why)
			return
		}
		v.log.Error("the pool has no worker that is up: its requests get 503", "workers", why)
	}
}
