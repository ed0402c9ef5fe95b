// Package worker holds the state of the vLLM workers behind one [[pools]] table: whether each is up, what was sent to
// it, how loaded and how fast it is. It fills the rows from which a strategy chooses, except for the fields that depend
// on the prompt: the prefix index fills those with what a worker's cache holds.
//
// # Silence
//
// This room sends nothing and reads no clock. A prober reports the workers' answers (reports.go), callers pass the time
// in, and Config.After is the only timer. So a test, a backtest in virtual time and the router run the same rules.
//
// # What stands where
//
// Each noun is a type with its own methods in its own file and no reference to another: health, breaker, slowStart,
// queue, flight, speed, rates, failures, listing, budget. An endpoint and its Workers are made of them. The fleet
// decides what needs all workers: judge.go has every change of a worker's state by its health checks, its metrics and
// the requests that end there. Pool locks and delegates.
//
// # Ranks
//
// A vLLM with --data-parallel-size N has N engines behind one port. It balances among them itself unless a request
// names one in X-data-parallel-rank. So a request that follows its prefix to the right worker meets the wrong cache N-1
// times in N. Therefore each rank is a Worker, with a slot, row, queue, load, KV cache, id and learnt speed of its own.
// The endpoint has what belongs to the port and the process: address, health, breaker, failures, models, and
// MaxInFlight, as the limit protects the process. A process that fails at one rank fails at all, and a trial is one
// request at one rank.
//
// The only worker of an endpoint has the endpoint's id and no rank header. One of several has id#rank, as gpu-1#2. The
// configured weight, cost, labels and KVTokens hold for each of them: a worker of four ranks has four times the share
// of a worker of one.
//
// The number of ranks is Spec.DataParallel, or the number that the worker reports. A prober reads it before the first
// good health check counts (Counted), as vLLM answers 400 to a rank that it does not have, and then from each page of
// metrics. A smaller number must stand on two pages in a row, as a removed rank takes the bindings of its sessions with
// it: for them it is a worker that is gone. Ranks that stay keep all their state. The requests of a removed rank run to
// their end, and then its slot is free. Until an endpoint was up once, none of its ranks is gone: a session that Redis
// has bound to gpu-1#2 waits for gpu-1 after a restart of the router (TestRanksAreLearnt).
//
// What lost: a rank as a field of the request, chosen after the worker. Strategy, index, sessions, explanation and
// metrics would each have had to learn of a second choice. One health check and one scrape a rank, which needs no
// endpoint: N times the probes, and N breakers that find the same death one after another.
//
// # One lock
//
// A pool has one mutex. A request takes it four times (Snapshot, TryBegin, FirstByte, End), each for well under a
// microsecond at 16 workers (BenchmarkSnapshot, BenchmarkBeginEnd). Atomics in each worker lost: W, pend and its head
// must be read together or W jumps, and the rules of learning need the order of first bytes. The pool gathers changes
// while it holds the lock. It logs them and calls the hooks after the release, so a hook may call the pool. Two racing
// changes of one worker may then be announced in either order; the hooks only drop caches or give hints. A Watcher
// needs the order, so it is called with the lock held.
//
// # Slow is not dead
//
// A worker is up from its first good health check on. It goes down at once when nothing listens or its health check
// returns 5xx. It goes down after two silent checks if no byte of an answer came from it for five seconds: a worker
// deep in prefill answers late, and to take it out would throw its cache away and overload the next one. Down is death:
// the worker's queue is dropped, OnDown makes the index drop its cache, and it returns with the fleet's speed. For
// lesser faults there is a breaker, which leaves the cache in the index:
//
//   - Five failed answers in a row eject a worker for a back-off that doubles from one health interval to 30 s. At most
//     half of the workers that are there are ejected: if all fail, the fault is not theirs.
//   - An answer that shows a shutdown (finish_reason "abort", a bare [DONE]) marks the worker as draining. Nothing else
//     shows it: /health and /metrics of a draining vLLM stay good. Its requests meanwhile come back empty, so the bound
//     of half the fleet does not hold here. The process ends it: down and up again, or another start time in the
//     metrics. A paused engine has no new process, so it is tried after 5 s, doubling to 60.
//
// After the back-off there is one trial request at a time, and its end decides. Several at once lost: a trial at a
// broken worker is a client's request, which must be repeated elsewhere.
//
// # Who waits at a worker that went down
//
// A process that shuts down closes its port and answers its requests. A process that hangs in its shutdown keeps the
// connections, silent. So a fall begins a grace for the requests in flight there (flight.go). Each byte of an answer
// begins it anew, and a return of the worker ends it. When it is over, the pool calls the Holder of each silent
// request. For that, a removed worker's health is watched until its last request (TestDownGrace,
// TestDownGraceOfARemovedWorker).
//
// # Coming back
//
// A worker that comes back has nothing in flight and would get every request. slowstart.go doses it, whatever the
// strategy: of ten workers with streams of 20 s, a returned one gets at most twice its share in any second until it has
// caught up (TestNoBurst). A slow start as a mere hint in the row lost: only strategies that read the hint followed it.
//
// # What a failure may cost
//
// budget.go bounds repeats, MaxInFlight the requests at a worker. Snapshot leaves full workers out, and TryBegin keeps
// the limit when two requests saw one free place (TestLimitRaces). When no worker is up and Panic is set, all are
// offered: a fault of the health checks must not be worse than one of the fleet.
//
// # What is learnt
//
// queue.go, speed.go and rates.go have the rules for W, m, rho and lambda. There are two additions for other traffic
// than streams. An answer in one piece (Dispatch.Whole) shows no first byte when prefill ends. Its work counts as done
// when its predicted time is over, or when a later request gets its first byte, as vLLM prefills in order of arrival.
// Answers that are errors are no samples. In a fleet that streams nothing, the workers' own metrics show which of them
// is slow (speed.go, TestToldWhoIsSlow).
package worker
