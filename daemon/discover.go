package daemon

import (
	"log/slog"
	"net"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/adapt"
	"github.com/warmpath/warmpath/daemon/fleet/discover"
)

// nameServers are those of the system. Tests have their own.
var nameServers = &net.Resolver{StrictErrors: true}

// newDiscovery makes a pool's discovery.
func newDiscovery(log *slog.Logger) *discover.Discovery[conf.Worker] {
	return discover.New(adapt.Discovery(log, discover.System(nameServers), watchPoll))
}
