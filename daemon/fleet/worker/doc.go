// Package worker holds the state of the vLLM workers behind one [[pools]] table: whether each is up, what was sent to
// it, how loaded and how fast it is. It fills the rows from which a strategy chooses, except for the fields that depend
// on the prompt: the prefix index fills those with what a worker's cache holds.
//
// This package sends nothing and reads no clock. A prober reports the workers' answers (reports.go), callers pass the
// time in, and Config.After is the only timer. Within the package a time is a time.Duration since the pool began, and 0
// means never.
//
// # Ranks
//
// A vLLM with --data-parallel-size N has N engines behind one port. It balances among them itself unless a request
// names one in X-data-parallel-rank, and its choice misses the prefix N-1 times in N. Therefore each rank is a Worker,
// with a row, queue, load, KV cache, id and learnt speed of its own. The endpoint has what belongs to the port and the
// process: address, health, breaker, failures, models, and MaxInFlight. The only worker of an endpoint has its id and
// no rank header. One of several has id#rank, as gpu-1#2. Weight, cost, labels and KVTokens hold for each.
//
// The number of ranks is Spec.DataParallel, or what the worker reports (TestRanksAreLearnt).
//
// # One lock
//
// A pool has one mutex. It logs changes and calls the hooks after the release, so a hook may call the pool, and two
// racing changes of one worker may be announced in either order. A Watcher needs the order, so it is called with the
// lock held.
//
// # What happens to a sick worker
//
// Package judge decides what is known of a worker's health. Then:
//
//   - A worker that is down loses its queue, Caches.Down makes the index drop its cache, and it returns with the
//     fleet's speed.
//   - A worker that is silent keeps its cache and its requests. It gets new ones only if no other worker takes them.
//   - A worker that is set aside by its breaker keeps its cache. At most half of the workers are set aside at a time.
//     If no other worker takes a request, one of these gets it.
//
// why.md lists what opens a breaker and what moves a request away from a worker that hangs.
//
// # What is learnt
//
// queue.go has the rules for W, the wait, and package measure those for m, rho and lambda: slowness, load and rate.
package worker
