package adapt

import (
	"context"
	"log/slog"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/fleet/discover"
	"github.com/warmpath/warmpath/daemon/fleet/discover/endpoints"
)

// Discovery returns how a pool's workers are found. It looks at their file every poll.
func Discovery(log *slog.Logger, resolve discover.Resolver, poll time.Duration,
	registered func() []conf.Worker) discover.Config[conf.Worker] {
	return discover.Config[conf.Worker]{Log: log, Resolve: resolve, Format: format{poll}, Registered: registered}
}

// format implements [discover.Format] for the configuration's workers.
type format struct{ poll time.Duration }

func (format) URL(w conf.Worker) string { return w.URL }

func (format) AtURL(url string, prefiller bool) conf.Worker {
	w := conf.WorkerAt(url)
	if prefiller {
		w.Role = conf.RolePrefill
	}
	return w
}

// AtPod gives the worker the pod's name as its id if an id may be that long, and its zone as a label.
func (f format) AtPod(p endpoints.Worker, prefiller bool) conf.Worker {
	w := f.AtURL(p.URL, prefiller)
	if n := len(p.Pod); n > 0 && n <= conf.MaxID {
		w.ID = p.Pod
	}
	if p.Zone != "" {
		w.Labels = map[string]string{"zone": p.Zone}
	}
	w.Drain = p.Leaving
	return w
}

func (format) ReadFile(path string) ([]conf.Worker, error) { return conf.LoadWorkers(path) }

func (f format) Watch(ctx context.Context, files func() []string, changed func()) {
	conf.Watch(ctx, f.poll, files, changed)
}

// Sources returns those of a pool's workers.
func Sources(c *conf.Pool) discover.Sources[conf.Worker] {
	d := &c.Disaggregation
	s := discover.Sources[conf.Worker]{Workers: c.Workers, File: c.WorkersFile,
		Group:      discover.Group{Name: c.WorkersDNS, Kubernetes: service(&c.Kubernetes)},
		Prefillers: discover.Group{Name: d.PrefillDNS}}
	if d.PrefillService != "" {
		k := c.Kubernetes
		k.Service, k.Selector = d.PrefillService, ""
		s.Prefillers.Kubernetes = service(&k)
	}
	return s
}

// service returns the Kubernetes service whose pods are workers.
func service(k *conf.Kubernetes) endpoints.Service {
	return endpoints.Service{Name: k.Service, Selector: k.Selector, Namespace: k.Namespace, Port: k.Port, API: k.API,
		Account: k.Account}
}
