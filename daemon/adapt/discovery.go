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
func Discovery(log *slog.Logger, resolve discover.Resolver, poll time.Duration) discover.Config[conf.Worker] {
	return discover.Config[conf.Worker]{Log: log, Resolve: resolve, Format: format{poll}}
}

// format implements [discover.Format] for the configuration's workers.
type format struct{ poll time.Duration }

func (format) URL(w conf.Worker) string { return w.URL }

func (format) AtURL(url string) conf.Worker { return conf.WorkerAt(url) }

// AtPod gives the worker the pod's name as its id if an id may be that long.
func (format) AtPod(p endpoints.Worker) conf.Worker {
	w := conf.WorkerAt(p.URL)
	if n := len(p.Pod); n > 0 && n <= conf.MaxID {
		w.ID = p.Pod
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
	k := &c.Kubernetes
	return discover.Sources[conf.Worker]{Workers: c.Workers, File: c.WorkersFile, Name: c.WorkersDNS,
		Kubernetes: endpoints.Service{Name: k.Service, Selector: k.Selector, Namespace: k.Namespace, Port: k.Port,
			API: k.API, Account: k.Account}}
}
