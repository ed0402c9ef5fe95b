// Package metrics counts what becomes of requests, and serves /metrics.
//
// [Metrics] implements journal.Meter and front.Meter: it counts the outcomes of requests in the counters and
// histograms of counted.go. The counts of other packages are read when Prometheus scrapes, by the tables of of_pools.go
// and of_process.go. A metric is one declaration there and nothing else: it registers itself, and is removed with its
// worker or pool. docs/metrics.md lists them all (TestMetricsAreListed writes it). What lost: a field, its constructor,
// its registration and its removal, each in a list of its own.
//
// A label whose values a client could make up is bounded (names.go). All counts of a pool have the label pool, as two
// pools may use the same worker ids. The series of a worker or pool that has left the configuration are removed a
// minute after its last request (departed.go, TestSeriesOfGoneWorkersGo): otherwise pods that roll would make
// /metrics grow for the life of the process.
//
// The counts of the last hour ([Recent]) and of keys ([Metrics.Keys]) are kept beside them, so that pages and warnings
// need no Prometheus.
//
// Only this package imports prometheus/client_golang: the format has one well-kept implementation.
package metrics
