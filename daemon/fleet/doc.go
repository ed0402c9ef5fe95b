// Package fleet is the wing that knows the workers: which there are, how they are, what they hold. It has no code of
// its own: each folder below it is a package.
//
//	worker    the state of a pool's workers: up or not, load, speed
//	measure   how fast workers are, how many requests they get, when a place becomes free
//	order     workers in order of their load, for a choice among some of many
//	labels    the labels of workers, as bits
//	models    which models and adapters a worker has
//	judge     what requests, health checks and metrics prove of a worker's health
//	probe     asks them for /health, /v1/models and /metrics
//	discover  makes one list of workers of files, DNS names and Kubernetes
//	feed      subscribes to their KV events
//	wake      calls an operator's scaler while no worker is up for a request
//
// worker has one lock, reads no clock and opens no socket: its callers pass the time in. probe, discover and feed ask
// the network and report to it what they found. Read judge/evidence.go first.
package fleet
