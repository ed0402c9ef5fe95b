package adapt

import (
	"context"
	"log/slog"
	"time"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/fleet/discover"
	"github.com/warmpath/warmpath/daemon/fleet/discover/endpoints"
)

// Discovery returns how a pool's workers are found, with the configuration's own ways to read a file and to watch it.
func Discovery(log *slog.Logger, resolve discover.Resolver, poll time.Duration) discover.Config[conf.Worker] {
	return discover.Config[conf.Worker]{
		Log:      log,
		Resolve:  resolve,
		URL:      func(w conf.Worker) string { return w.URL },
		AtURL:    conf.WorkerAt,
		AtPod:    atPod,
		ReadFile: conf.LoadWorkers,
		Watch: func(ctx context.Context, files func() []string, changed func()) {
			conf.Watch(ctx, poll, files, changed)
		},
	}
}

// atPod returns the worker in a pod. The pod's name is its id if an id may be that long.
func atPod(p endpoints.Worker) conf.Worker {
	w := conf.WorkerAt(p.URL)
	if n := len(p.Pod); n > 0 && n <= conf.MaxID {
		w.ID = p.Pod
	}
	w.Drain = p.Leaving
	return w
}

// Sources returns those of a pool's workers.
func Sources(c *conf.Pool) discover.Sources[conf.Worker] {
	k := &c.Kubernetes
	return discover.Sources[conf.Worker]{Workers: c.Workers, File: c.WorkersFile, Name: c.WorkersDNS,
		Kubernetes: endpoints.Service{Name: k.Service, Selector: k.Selector, Namespace: k.Namespace, Port: k.Port,
			API: k.API, Account: k.Account}}
}
