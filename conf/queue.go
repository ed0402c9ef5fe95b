package conf

import (
	"fmt"
	"net/url"
	"time"
)

// Queue is where a pool's requests wait that no worker has room for. A pool has one if something bounds that room
// (max_in_flight, max_wait_seconds, max_kv_use), or if WaitEmpty is set.
type Queue struct {
	MaxRequests int           `toml:"max_requests"` // that wait; 0 = none does
	MaxBytes    int           `toml:"max_bytes"`    // of memory that they hold, with their bodies
	Wait        time.Duration `toml:"wait"`         // for room; then 429
	WaitEmpty   time.Duration `toml:"wait_empty"`   // for a worker, while none is up; then 503
	Order       string        `toml:"order"`        // fifo | deadline, of the requests of one flow
	Starve      time.Duration `toml:"starve"`       // a key that waits so long is served whatever its priority; 0 = never
	WakeURL     string        `toml:"wake_url"`     // gets a POST when a request comes and no worker is up; "" = none
}

// MaxPriority bounds priorities: they go from -MaxPriority to MaxPriority.
const MaxPriority = 100

// The weights that a key may have.
const (
	minKeyWeight = .1
	maxKeyWeight = 100
)

func defaultQueue() Queue {
	return Queue{MaxRequests: 5000, MaxBytes: 256 << 20, Wait: time.Minute, Order: "fifo", Starve: 5 * time.Second}
}

func checkQueue(r *report, path string, q *Queue) {
	r.between(child(path, "max_requests"), q.MaxRequests, 0, maxCount, "requests, 0 for no queue,")
	r.between(child(path, "max_bytes"), q.MaxBytes, minBuffer, 1<<40, "bytes")
	r.notNegative(child(path, "wait"), q.Wait, "for no time at all, or how long a request may wait")
	r.notNegative(child(path, "wait_empty"), q.WaitEmpty, "to refuse at once, or how long a worker takes to start")
	r.oneOf(child(path, "order"), q.Order, "fifo", "deadline")
	r.notNegative(child(path, "starve"), q.Starve, "for never, or how long a flow may go without a turn")
	if u, err := url.Parse(q.WakeURL); q.WakeURL != "" &&
		(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		r.add(child(path, "wake_url"), fmt.Sprintf("%.80q is no URL", q.WakeURL), `write as "http://scaler:8080/wake"`)
	}
}
