// Package worker holds the state of the vLLM workers behind one [[pools]] table: whether each is up, what was sent to
// it, how loaded and how fast it is. It fills the rows from which a strategy chooses, except for the fields that depend
// on the prompt: the prefix index fills those with what a worker's cache holds.
//
// This room sends nothing and reads no clock. A prober reports the workers' answers (reports.go), callers pass the time
// in, and Config.After is the only timer. So a test, a backtest in virtual time and the router run the same rules.
//
// # What stands where
//
// Each noun is a type with its own methods in its own file and no reference to another: health, process, breaker, room,
// slowStart, queue, flight, speed, rates, failures, listing, budget. An endpoint and its Workers are made of them. The
// fleet decides what needs all workers: judge.go has every change of a worker's state by its health checks and its
// metrics, verdict.go by the requests that end there. Pool locks and delegates.
//
// # Ranks
//
// A vLLM with --data-parallel-size N has N engines behind one port. It balances among them itself unless a request
// names one in X-data-parallel-rank, so a request that follows its prefix to the right worker meets the wrong cache N-1
// times in N. Therefore each rank is a Worker, with a row, queue, load, KV cache, id and learnt speed of its own. The
// endpoint has what belongs to the port and the process: address, health, breaker, failures, models, and MaxInFlight.
// The only worker of an endpoint has the endpoint's id and no rank header. One of several has id#rank, as gpu-1#2. The
// configured weight, cost, labels and KVTokens hold for each of them.
//
// The number of ranks is Spec.DataParallel, or what the worker reports: before the first good health check counts
// (Counted), as vLLM answers 400 to a rank that it does not have, and then on each page of metrics. A smaller number
// must stand on two pages in a row, as a removed rank takes the bindings of its sessions with it. Until an endpoint was
// up once, none of its ranks is gone: a session that Redis has bound to gpu-1#2 waits for gpu-1 after a restart of the
// router (TestRanksAreLearnt).
//
// What lost: a rank as a field of the request, chosen after the worker, as strategy, index, sessions, explanation and
// metrics would each have had to learn of a second choice. One health check and one scrape a rank, which needs no
// endpoint: N times the probes, and N breakers that find the same death one after another.
//
// # One lock
//
// A pool has one mutex. A request takes it four times (Snapshot, Begin, FirstByte, End), each for well under a
// microsecond at 16 workers (BenchmarkSnapshot, BenchmarkBeginEnd). Atomics in each worker lost: W, pend and its head
// must be read together or W jumps, and the rules of learning need the order of first bytes. The pool logs changes and
// calls the hooks after the release, so a hook may call the pool, and two racing changes of one worker may be announced
// in either order. A Watcher needs the order, so it is called with the lock held.
//
// # What proves what
//
// evidence.go has the table of signs that requests bring, health.go those of health checks, process.go those of pages
// of metrics. Three rules hold for all of them.
//
//   - One request convicts nobody. The same request failing alike at a second worker takes its sign back at the first
//     (Ticket.Excuse), and a refusal counts only once another worker has accepted the same request (Ticket.Confirm).
//   - Silence is no death. A worker is up from its first good health check on. It is down at once when nothing listens,
//     and after two answers of 500 or more to its checks: a sidecar that reloads gives one. Two late checks in a row
//     make it silent, unless a byte of an answer came within five seconds. A silent worker keeps its cache and what it
//     has, and gets new requests only if no other worker takes them.
//   - Suspicion never empties a pool. At most half of the workers that are there are set aside, and if nobody else
//     takes a request, a suspect gets it.
//
// Down is death: the worker's queue is dropped, Caches.Down makes the index drop its cache, and it returns with the
// fleet's speed. For lesser faults there is a breaker, which leaves the cache in the index:
//
//   - Five failed answers in a row eject a worker for a back-off that doubles from one health interval to 30 s. After
//     the back-off there is one trial request at a time: it is a client's, and must be repeated elsewhere if it fails.
//   - A stream whose client left counts as a failed answer for each 10 s that it had waited, or three times its
//     predicted prefill, if meanwhile the engine gave nobody a byte and its metrics showed no work: it hangs, which
//     /health does not show (hang.go).
//   - Three requests in a row that it refuses and another worker accepts eject it as well.
//   - Three answers in a row that give up what it had accepted (finish_reason "abort", a bare [DONE]) mark a worker as
//     draining, and its own words that it is going do so at once. Nothing else shows it: /health and /metrics of a
//     draining vLLM stay good. A new process ends it; as a paused engine has none, it is tried after 5 s, doubling to
//     60.
//
// A worker that is full (503, 429) is not sick. room.go lowers its share for a moment.
//
// A process that hangs in its shutdown keeps its connections, silent. So a fall begins a grace for the requests in
// flight there (flight.go), which each byte of an answer begins anew and a return of the worker ends. When it is over,
// the pool calls the Holder of each silent request (TestDownGrace, TestDownGraceOfARemovedWorker). At a worker that is
// only silent the grace is three times as long, and a request moves only if nothing of its answer came and another
// worker takes it (TestSilentKeepsWhatItHas).
//
// A worker that comes back has nothing in flight and would get every request. slowstart.go doses it, whatever the
// strategy: of ten workers with streams of 20 s, a returned one gets at most twice its share in any second until it has
// caught up (TestNoBurst). A slow start as a mere hint in the row lost: only strategies that read the hint followed it.
//
// budget.go bounds repeats, MaxInFlight the requests at a worker: Begin keeps the limit when two requests saw one
// free place (TestLimitRaces). When no worker is up and Panic is set, all are offered: a fault of the health checks
// must not be worse than one of the fleet.
//
// # What is learnt
//
// queue.go, speed.go and rates.go have the rules for W, m, rho and lambda. An answer in one piece (Dispatch.Whole)
// shows no first byte when prefill ends. Its work counts as done when its predicted time is over, or when a later
// request gets its first byte, as vLLM prefills in order of arrival. Answers that are errors are no samples. In a fleet
// that streams nothing, the workers' own metrics show which of them is slow (speed.go, TestToldWhoIsSlow).
package worker
