// Package parts holds small mechanisms that the caches and the daemon share: a bounded queue, a circuit breaker, a
// quota, an address to listen on. None of them stores a value for a client. The folder holds no code of its own.
package parts
