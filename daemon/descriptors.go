package daemon

import (
	"github.com/warmpath/warmpath/conf"
	"github.com/warmpath/warmpath/daemon/listen"
)

// roomFor returns how many connections clients and the operator can have: what is configured, or what the limit of open files
// has room for.
func (d *Daemon) roomFor(c *conf.Config) (clients, admin int) {
	clients, admin = c.Server.MaxConnections, 256
	limit, ok := openFiles()
	if !ok {
		return clients, admin
	}
	k := listen.Kept{Redis: c.Cache.Redis != "" || c.Cache.RedisURLFile != ""}
	for _, p := range d.state.Load().pools {
		k.Workers += len(p.set.Load().conf.Workers)
	}
	room, admin := listen.Room(limit, k)
	if room < clients && int64(room) != d.room.Swap(int64(room)) {
		d.log.Warn("max_connections is lowered to what the limit of open files has room for: a stream takes two descriptors; raise the limit (ulimit -n, systemd's LimitNOFILE) or lower server.max_connections",
			"max_connections", c.Server.MaxConnections, "in_force", room, "open_files", limit, "needed", listen.Needs(clients, k))
	}
	return min(room, clients), admin
}

// openFiles is the limit of open files; tests give another.
var openFiles = listen.OpenFiles

// fitRoom reckons the room for clients again, as reloads and discovery change how many workers there are. max_connections itself is
// that of the start.
func (d *Daemon) fitRoom() {
	if d.fitted.Load() {
		most, _ := d.roomFor(d.atStart)
		d.front.SetMaxConns(most)
	}
}
