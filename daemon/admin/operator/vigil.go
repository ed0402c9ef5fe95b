package operator

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/admin/readiness"
	"github.com/warmpath/warmpath/daemon/fleet/worker"
	"github.com/warmpath/warmpath/daemon/transport/gate"
)

// maxListed bounds the lists in log lines.
const maxListed = 32

// listed returns the models that the pool's workers list, for an operator who checks a name's spelling.
func listed(stats []worker.Stats) (models []string) {
	for _, s := range stats {
		for _, m := range s.Models {
			name := gate.Cut(m)
			if s.Up && len(models) < maxListed && !slices.Contains(models, name) {
				models = append(models, name)
			}
		}
	}
	return models
}

// Vigil logs when a pool loses its last worker, or has no worker that lists its models, and when that is over.
type Vigil struct {
	log *slog.Logger

	mu    sync.Mutex // guards all below; held while a line is written, so that the lines are in order
	empty bool
	unfit string // the models that were named
	deny  bool   // all workers refuse this router's key
	lost  string // the aliases that are astray
}

// NewVigil logs to log, which has the pool's name.
func NewVigil(log *slog.Logger) *Vigil { return &Vigil{log: log} }

// Look logs what has changed since the last call. Call it on each change of a worker, and once a second, as a list of
// models changes without one.
func (v *Vigil) Look(p *readiness.Pool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	stats := slices.DeleteFunc(p.Workers.Stats(time.Now()), func(s worker.Stats) bool { return s.Prefills })
	v.logEmpty(p, stats)
	why := p.WhyNot(stats)
	if deny := why == readiness.WhyKey; deny != v.deny {
		v.deny = deny
		if deny {
			v.log.Error("all workers refuse this router's key: the pool's requests get 502; correct worker_key_file of the pool")
		} else {
			v.log.Info("a worker accepts this router's key again")
		}
	}
	if lost := strings.Join(readiness.InWords(p.Astray(stats)), ", "); lost != v.lost {
		v.lost = lost
		if lost == "" {
			v.log.Info("each alias leads to a model that a worker lists")
		} else {
			v.log.Warn("an alias leads to a model that no worker lists: correct to of [[models]], or --served-model-name of "+
				"the workers", "aliases", lost, "they_list", listed(stats))
		}
	}
	unfit := ""
	if why == readiness.WhyUnfit {
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
	v.log.Warn("no worker lists a model that the pool's patterns fit: its requests are refused; correct models of the "+
		"pool, or --served-model-name of the workers", "patterns", p.Models, "they_list", listed(stats))
}

// logEmpty logs the last worker's fall or drain, and its return. A worker whose breaker lets one trial through is not
// up yet.
func (v *Vigil) logEmpty(p *readiness.Pool, stats []worker.Stats) {
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
		if p.Holds > 0 && !p.Panic {
			v.log.Info("the pool has no worker that is up: its requests wait for one", "wait_empty", p.Holds)
			return
		}
		if p.Panic {
			v.log.Error("the pool has no worker that is up: its requests go to one that is not (panic = true)",
				"workers", states(stats))
			return
		}
		if slices.ContainsFunc(stats, func(s worker.Stats) bool { return s.Last }) {
			v.log.Warn("the pool has no worker that is up: its requests go to those that are paused, silent or set aside",
				"workers", states(stats))
			return
		}
		v.log.Error("the pool has no worker that is up: its requests get 503", "workers", states(stats))
	}
}

// states returns a line for each worker: its state, and the error that caused it.
func states(stats []worker.Stats) (lines []string) {
	for _, s := range stats[:min(len(stats), maxListed)] {
		line := s.ID + ": " + s.State.String()
		if s.State == worker.Down && !s.ErrorOver && s.LastError != "" {
			line += ": " + s.LastError
		}
		lines = append(lines, line)
	}
	return lines
}
