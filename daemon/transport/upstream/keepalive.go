package upstream

import (
	"net"
	"time"
)

// vanished is how long a worker's host may be gone without a word before the connections to it break. Nothing else ends
// a wait for it before ChunkTimeout or HeaderTimeout, which are as long as a healthy worker may be silent.
const vanished = keepIdle + keepCount*keepInterval

const (
	keepIdle     = 15 * time.Second
	keepInterval = 10 * time.Second
	keepCount    = 3
)

// keepAlive has the kernel ask a silent worker's host whether it is there.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: keepIdle, Interval: keepInterval, Count: keepCount}
