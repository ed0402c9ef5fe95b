// Package operator is what an operator is told: /metrics, /api/v1, profiles, and whether a pool can serve.
//
// Metrics implements exchange.Meter: it counts what becomes of requests. What other rooms count is read when Prometheus asks
// (collect.go). A label whose values a client could make up is bounded; pool is a label of everything that a pool does, as two pools may
// use the same worker ids. The series of a worker or pool that has left the configuration go a minute after its last
// request (departed.go, TestSeriesOfGoneWorkersGo).
//
// The listener answers to an address, to localhost and to its own name alone (strangers.go), as on loopback there is no token to
// keep web pages of others off it.
//
// prometheus/client_golang is imported here alone: the format has one well-kept implementation.
package operator
