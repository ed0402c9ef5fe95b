// Package operator is what an operator reads: /metrics, /api/v1, profiles, and whether a pool can serve.
//
// # Metrics
//
// [Metrics] implements exchange.Meter and front.Meter: it counts what becomes of requests, in the counters and
// histograms of counted.go. What other rooms count themselves is read when Prometheus asks, in the tables of
// of_pools.go and of_process.go. A metric is one declaration there and nothing else: it registers itself, and goes
// with its worker or pool. docs/metrics.md lists them all (TestMetricsAreListed writes it). What lost: a field, its
// constructor, its registration and its removal, each in a list of its own.
//
// A label whose values a client could make up is bounded (names.go). pool is a label of everything that a pool does,
// as two pools may use the same worker ids. The series of a worker or pool that has left the configuration go a
// minute after its last request (departed.go, TestSeriesOfGoneWorkersGo): with no end, pods that roll would make
// /metrics grow for the life of the process.
//
// prometheus/client_golang is imported here alone: the format has one well-kept implementation.
//
// # The listener
//
// It answers to an address, to localhost and to its own name alone (strangers.go), as on loopback there is no token
// to keep web pages of others off it.
//
// Every answer has a struct of its own, as openapi.json tells all routes and fields from a table and these types
// (TestOpenAPIHasEveryRoute, TestOpenAPIFile write and check it; the daemon's TestTheAPIIsAsItsFileSays asks each).
//
// # Whether a pool can serve
//
// [Readiness] and [Describe] are made of the workers' counts at that moment. A [Vigil] logs the two changes that
// nobody may miss: a pool lost its last worker, or no worker lists a model that the pool is to serve.
package operator
