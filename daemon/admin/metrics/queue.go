package metrics

import (
	"github.com/warmpath/warmpath/daemon/request/journal"
	"github.com/warmpath/warmpath/daemon/request/message"
	"github.com/warmpath/warmpath/daemon/request/waiting"
)

// Metrics of the queues of pools.
var (
	queueWait = newHistogram("queue_wait_seconds", "Time that a request waited in the router, for a limit of its key or "+
		"a worker with room. class: low, normal or high, as its priority is below 0, 0, or above. Requests that did not "+
		"wait are not counted.",
		secondBuckets, "pool", "class")
	queueDropped = newCounter("queue_dropped_total", "Requests that the queue turned away or gave up: queue_full, wait "+
		"(no room in time), no_workers (no worker came up in time), deadline (the first token would come too late), "+
		"limit (a limit of its key did not let it in in time), client_gone.", "pool", "class", "reason")
)

var ofQueues = []reading[waiting.Level]{
	gauge("queue_depth", "Requests that wait in the router, for a limit of their key or a worker with room.",
		[]string{"pool", "class"}, func(l waiting.Level) float64 { return float64(l.Requests) }),
	gauge("queue_bytes", "Memory that these requests hold.", []string{"pool", "class"},
		func(l waiting.Level) float64 { return float64(l.Bytes) }),
}

// Waited implements journal.Meter.
func (m *Metrics) Waited(s *message.Seen, w journal.Waited) {
	class := waiting.ClassName(s.Queued.Priority)
	if w.Took > 0 {
		m.series.histogram(queueWait, s.Pool, class).Observe(w.Took.Seconds())
	}
	if w.Dropped != "" {
		m.series.counter(queueDropped, s.Pool, class, w.Dropped).Inc()
	}
}
