package daemon

import (
	"log/slog"
	"sync/atomic"

	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/transport/listen"
)

// descriptorLimit is how many connections the limit of open files leaves for clients.
type descriptorLimit struct {
	log    *slog.Logger
	logged atomic.Int64 // clients, in the last line
}

// openFiles is the limit of open files; tests give another.
var openFiles = listen.OpenFiles

// fit returns how many connections clients and the operator can have: what is configured, or what there is room for.
// Reloads and discovery change how many workers there are, and with them the room.
func (r *descriptorLimit) fit(c *conf.Config, pools []*pool) (clients, admin int) {
	clients = c.Server.MaxConnections
	limit, ok := openFiles()
	if !ok {
		return clients, 256
	}
	k := listen.Kept{Redis: c.Cache.Redis != "" || c.Cache.RedisURLFile != "", Doors: c.KVCache.Connections()}
	for _, p := range pools {
		k.Workers = append(k.Workers, len(p.set.Load().conf.Workers))
	}
	most, admin := listen.Room(limit, k)
	if was := r.logged.Load(); most < clients && (was == 0 || int64(most) < was*9/10) { // a worker more or less is no news
		r.logged.Store(int64(most))
		r.log.Warn("max_connections is lowered to what the limit of open files has room for: a stream takes two "+
			"descriptors; raise the limit (ulimit -n, systemd's LimitNOFILE) or lower server.max_connections",
			"max_connections", clients, "in_force", most, "open_files", limit, "needed", listen.Needs(clients, k))
	}
	return min(most, clients), admin
}
