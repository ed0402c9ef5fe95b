package daemon

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/warmpath/warmpath/daemon/gate"
	"github.com/warmpath/warmpath/daemon/worker"
)

// Why a pool cannot serve. Clients see these words on /ready: they name no worker and no model.
const (
	whyStarting = "no worker has had its first health check yet"
	whyEmpty    = "no worker is up"
	whyPanics   = "no worker is up; requests go to workers that are not (panic = true)"
	whyUnfit    = "no worker lists a model that the pool's patterns fit"
)

// whyNot says why a pool cannot serve, "" if it can. A worker whose models have not been heard yet may have any.
func (p *pool) whyNot(stats []worker.Stats) string {
	up, starting := 0, false
	for _, s := range stats {
		starting = starting || s.State == worker.Starting
		if !s.Up {
			continue
		}
		if up++; s.Models == nil || slices.ContainsFunc(s.Models, p.serves) {
			return ""
		}
	}
	switch {
	case up > 0:
		return whyUnfit
	case starting:
		return whyStarting
	}
	return whyEmpty
}

// panics tells whether a pool without a worker that is up serves all the same: panic = true, and a worker that was not asked to
// drain. A load balancer that took the router away then would take away the last resort.
func (p *pool) panics(stats []worker.Stats) bool {
	return p.set.Load().conf.Panic && slices.ContainsFunc(stats, func(s worker.Stats) bool { return !s.Drained })
}

// listed are the models that the pool's workers list, for an operator who looks for a name's spelling.
func listed(stats []worker.Stats) (models []string) {
	for _, s := range stats {
		for _, m := range s.Models {
			if m = gate.Cut(m); s.Up && len(models) < maxTold && !slices.Contains(models, m) {
				models = append(models, m)
			}
		}
	}
	return models
}

// vigil is what the log was told last of whether a pool can serve.
type vigil struct {
	mu    sync.Mutex // guards all below; held while a line is written, so that the lines stand in order
	empty bool
	unfit string // the models that were named
}

// watchServing logs when the pool loses its last worker, or has none that lists what it is to serve, and when that is over. It
// is called on each change of a worker, and once a second as models are heard without one.
func (p *pool) watchServing() {
	if p.workers == nil { // it is being made
		return
	}
	p.vigil.mu.Lock()
	defer p.vigil.mu.Unlock()
	stats := p.workers.Stats(time.Now())
	p.vigil.noteEmpty(p, stats)
	unfit := ""
	if p.whyNot(stats) == whyUnfit {
		unfit = strings.Join(listed(stats), ", ")
	}
	if unfit == p.vigil.unfit {
		return
	}
	p.vigil.unfit = unfit
	if unfit == "" {
		p.log.Info("a worker lists a model that the pool's patterns fit")
		return
	}
	p.log.Warn("no worker lists a model that the pool's patterns fit: its requests get 404; correct models of the pool, or --served-model-name of the workers",
		"patterns", p.set.Load().conf.Models, "they_list", listed(stats))
}

// noteEmpty tells of the last worker's fall or drain. A worker whose breaker lets one request try it is not up yet.
func (v *vigil) noteEmpty(p *pool, stats []worker.Stats) {
	is := func(state worker.Standing) bool {
		return slices.ContainsFunc(stats, func(s worker.Stats) bool { return s.State == state })
	}
	switch {
	case is(worker.Ready):
		if v.empty {
			v.empty = false
			p.log.Info("the pool has a worker again")
		}
	case !is(worker.Starting) && !v.empty:
		v.empty = true
		var why []string
		for _, s := range stats[:min(len(stats), maxTold)] {
			line := s.ID + ": " + s.State.String()
			if s.State == worker.Down && !s.ErrorOver && s.LastError != "" {
				line += ": " + s.LastError
			}
			why = append(why, line)
		}
		if p.set.Load().conf.Panic {
			p.log.Error("the pool has no worker that is up: its requests go to one that is not (panic = true)", "workers", why)
			return
		}
		p.log.Error("the pool has no worker that is up: its requests get 503", "workers", why)
	}
}

// maxNamed bounds the models that a client is told.
const maxNamed = 8

// unlistedModel is the fault of a model that the pool is for and that none of its workers lists. Most likely one of the two is
// misspelt, so it names what they list: where explain is on, to callers who may use any model.
func (e *exchange) unlistedModel() fault {
	f := faultUnknownModel(e.req.Model)
	if !e.d.explain() || !e.in.Caller.Allows("") {
		return f
	}
	var names []string
	for _, m := range listed(e.pool.workers.Stats(e.arrived)) {
		if len(names) < maxNamed {
			names = append(names, strconv.Quote(m))
		}
	}
	if len(names) > 0 {
		f.message += "; those of its pool list " + strings.Join(names, ", ")
	}
	return f
}

// bare are the bodies by which a worker tells that it has no such path or method (Starlette's own). The SDKs of clients find no
// message in them.
var bare = map[string]bool{`{"detail":"Not Found"}`: true, `{"detail":"Method Not Allowed"}`: true}

// worded puts a bare refusal of a worker into the endpoint's shape, with words. Every other body stays as it is.
func (e *exchange) worded(status int, body []byte) []byte {
	if status != 404 && status != 405 || e.call != nil || !bare[string(body)] {
		return body
	}
	f := faultUnknownURL
	f.message = "the worker serves no " + gate.Cut(e.in.Method+" "+e.in.Path)
	return f.body(shapeOf(e.in.Path))
}
