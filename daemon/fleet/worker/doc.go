// Package worker holds the state of the vLLM workers behind one [[pools]] table: whether each is up, what was sent to
// it, how loaded and how fast it is. It fills the rows from which a strategy chooses, except for the fields that depend
// on the prompt: the prefix index fills those with what a worker's cache holds.
//
// This package sends nothing and reads no clock. A prober reports the workers' answers (reports.go), callers pass the
// time in, and Config.After is the only timer.
//
// # Which file has what
//
// Each of these is a type with its own file and no reference to another: health, process, breaker, room, slowStart,
// queue, flight, speed, rates, failures, listing, budget. An endpoint and its Workers are made of them. The fleet
// decides what needs all workers: judge.go has every change of a worker's state by its health checks, its metrics and
// its breaker, verdict.go by the requests that end there. Pool locks and delegates.
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
// # What proves what
//
// evidence.go has the table of signs that requests bring, health.go those of health checks, process.go those of pages
// of metrics. Three rules hold for all of them.
//
//   - One request takes no worker out. If it fails in the same way at a second worker, it no longer counts against the
//     first (Ticket.Excuse). A refusal counts for its kind, once another worker accepts the request
//     (Ticket.Confirm).
//   - A silent worker is not dead. A worker is up from its first good health check on. It is down at once when nothing
//     listens, and after two answers of 500 or more to its checks. Two late checks in a row make it silent, unless a
//     byte of an answer came within five seconds. It then keeps its cache and its requests, and gets new ones only if
//     no other worker takes them.
//   - Suspicion never empties a pool. At most half of its workers are set aside, and if no other worker takes a
//     request, one of these gets it.
//
// Down means dead: the worker's queue is dropped, Caches.Down makes the index forget its cache, and it returns with the
// fleet's speed. For lesser faults there is a breaker, which leaves the cache in the index. For a moment, headroom.go
// lowers the share of a worker that is full (503, 429), slowstart.go that of one that comes back. budget.go bounds
// repeats. why.md lists what opens a breaker and what moves a request away from a worker that hangs.
//
// # What is learnt
//
// queue.go, speed.go, signs.go and rates.go have the rules for W, m, rho and lambda. Answers that are errors are no
// samples.
package worker
