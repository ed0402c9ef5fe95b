package daemon

import (
	"context"
	"log/slog"
	"net"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/discover"
)

// nameServers are those of the system. Tests have their own.
var nameServers = &net.Resolver{StrictErrors: true}

// newDiscovery makes a pool's discovery, with the configuration's own ways to read a file and to watch it.
func newDiscovery(log *slog.Logger) *discover.Discovery[conf.Worker] {
	return discover.New(discover.Config[conf.Worker]{
		Log:      log,
		Resolve:  discover.System(nameServers),
		URL:      func(w conf.Worker) string { return w.URL },
		AtURL:    conf.WorkerAt,
		ReadFile: conf.LoadWorkers,
		Watch: func(ctx context.Context, files func() []string, changed func()) {
			conf.Watch(ctx, watchPoll, files, changed)
		},
	})
}

// sources are those of a pool's workers.
func sources(c conf.Pool) discover.Sources[conf.Worker] {
	return discover.Sources[conf.Worker]{Workers: c.Workers, File: c.WorkersFile, Name: c.WorkersDNS}
}
