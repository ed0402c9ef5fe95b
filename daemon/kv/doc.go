// Package kv is the wing of the workers' KV cache: the listeners at which LMCache puts and gets its chunks. It has no
// code of its own: each folder below it is a package. The store behind them is cache/kvstore: memory (L1), a disk
// (cache/kvstore/spill), and L2, which daemons share (cache/kvstore/remote: a Redis, or the daemons as one pool).
//
//	kvcache   the store and its listeners, as configured; l2.go opens L2, which the store knows as Config.Far
//	resp      the Redis protocol
//	hyperpod  SageMaker HyperPod's protocol: HTTP, and shared memory
//
// Read kvcache/kvcache.go first.
package kv
