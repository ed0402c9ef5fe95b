// Package judge decides about the health of a worker from what its requests, its health checks and its metrics show.
package judge
