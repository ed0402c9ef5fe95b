// Package order keeps a set of workers in order of their load, by three measures of the score: requests in flight, the
// prefill that is queued, and the room in the KV cache. The caller places a worker anew when its load changes, and asks
// for the first few. It keeps the means over all of them too.
package order
