package daemon

import "net"

// nameServers are those of the system. Tests have their own.
var nameServers = &net.Resolver{StrictErrors: true}
