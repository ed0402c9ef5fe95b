// Package kv is the wing of the workers' KV cache: the listeners at which LMCache puts and gets its chunks. It has no
// code of its own: each folder below it is a package. The store behind them is cache/kvstore.
//
//	kvcache   the store and its listeners, as configured
//	resp      the Redis protocol
//	hyperpod  SageMaker HyperPod's protocol: HTTP, and shared memory
//
// Read kvcache/kvcache.go first.
package kv
