// Package worker holds the state of the vLLM workers behind one [[pools]] table: who is up, what was sent where, how
// loaded and how fast each one is. It fills the rows from which a strategy chooses, but for the fields that depend on
// the prompt: what a worker's cache holds is for the prefix index to say.
//
// # Silence
//
// This room asks nobody and reads no clock. A prober reports what the workers answered (reports.go), callers pass the
// time in, and Config.After is the only timer. So a test, a backtest in virtual time and the router run the same rules.
//
// # What stands where
//
// Each noun is a type with its own methods in its own file, and knows no other: health, breaker, slowStart, queue,
// flight, speed, rates, failures, listing, budget. An endpoint and its Workers are made of them. The fleet decides what
// needs all workers: judge.go holds every change of what a worker is, by its health checks, its metrics and the
// requests that end there. Pool locks and delegates.
//
// # Ranks
//
// A vLLM with --data-parallel-size N has N engines behind one port. It balances among them by itself unless a request
// names one in X-data-parallel-rank, so a request that follows its prefix to the right worker meets the wrong cache
// N-1 times in N. Each rank is a Worker, then: slot, row, queue, load, KV cache and id are its own, and so is what is
// learnt of it. The port and the process are the endpoint's: address, health, breaker, failures, models, and
// MaxInFlight, as the limit protects the process. One that fails at one rank fails at all, and a trial is one request
// at one rank.
//
// The only worker of an endpoint has the endpoint's id and no rank header. One of several has id#rank, as gpu-1#2.
// What is configured (weight, cost, labels, KVTokens) holds for each of them: a worker of four ranks has four times
// the share of a worker of one.
//
// How many there are is Spec.DataParallel, or what the worker says: before its first good health check is believed
// (Counted), as a rank that it has no more is answered 400, and with each page of its metrics. Fewer than before must
// stand on two pages in a row, as a rank that goes takes the bindings of its sessions with it: for them it is a worker
// that is gone. Ranks that stay keep all that is known of them. The requests of one that goes run to their end, and
// then its slot is free. Until an endpoint was up once, none of its ranks is gone: a session that Redis has bound to
// gpu-1#2 waits for gpu-1 after a restart of the router (TestRanksAreLearnt).
//
// What lost: a rank as a field of the request, chosen after the worker. Strategy, index, sessions, explanation and
// metrics would each have had to learn of a second choice. One health check and one scrape a rank, which needs no
// endpoint: N times the probes, and N breakers that find the same death one after another.
//
// # One lock
//
// A pool has one mutex. A request takes it four times (Snapshot, TryBegin, FirstByte, End), each for well under a
// microsecond at 16 workers (BenchmarkSnapshot, BenchmarkBeginEnd). Atomics in each worker lost: W, pend and its head
// must be read together or W jumps, and the rules of learning need the order of first bytes. Changes are gathered while
// the lock is held. They are logged and handed to the hooks after it is given back, so a hook may call the pool. Two
// changes of one worker that race may then be announced in either order, and the hooks only drop or hint. A Watcher
// needs the order, so it is called with the lock held.
//
// # Slow is not dead
//
// A worker is up from its first good health check on. It goes down at once when nothing listens or its health says 5xx.
// It goes down after two silent checks if no byte of an answer came from it for five seconds: a worker deep in prefill
// answers late, and taking it out throws its cache away and buries the next. Down is death: its queue is forgotten,
// OnDown lets the index forget its cache, and it returns as fast as the fleet. What is not death is a breaker, and its
// cache stays believed:
//
//   - Five failed answers in a row eject a worker for a back-off that doubles from one health interval to 30 s. Never
//     more than half of those that are there are ejected: if all fail, the fault is not theirs.
//   - An answer that says that the worker is going (finish_reason "abort", a bare [DONE]) takes it for draining.
//     /health and /metrics of a vLLM that drains are as good as ever, so nothing else shows it. What it is sent
//     meanwhile comes back empty, so half of the fleet is no bound here. The process ends it: down and up again, or
//     another start time in the metrics. An engine that was only paused has no new process, so it is tried after 5 s,
//     doubling to 60.
//
// After the back-off there is one trial request at a time, and its end decides. Several at once lost: what a broken
// worker is sent is a client's request, and must be repeated elsewhere.
//
// # Who waits at a worker that went down
//
// A process that shuts down closes its port and answers what it has. One that hangs while it does keeps the
// connections, silent. So a fall begins a grace for the requests in flight there (flight.go). Each byte of an answer
// begins it anew, a return of the worker ends it, and the Holder of a request that is silent to its end is called. The
// health of a removed worker is watched for that until its last request (TestDownGrace, TestDownGraceOfARemovedWorker).
//
// # Coming back
//
// A worker that comes back has nothing in flight and would get everything. slowstart.go doses it, whatever the
// strategy: of ten workers with streams of 20 s, the one that is back gets at most twice its share in any second until
// it has caught up (TestNoBurst). A slow start that was only a hint to the strategy lost: it was heeded by those that
// look for it.
//
// # What a failure may cost
//
// budget.go bounds repeats, MaxInFlight what a worker has at a time: Snapshot leaves full workers out, and TryBegin
// keeps the limit when two saw one free place (TestLimitRaces). When nobody is up and Panic is set, everybody is
// offered: a fault of the health checks must not be worse than that of the fleet.
//
// # What is learnt
//
// W, m, rho and lambda are kept by the rules of queue.go, speed.go and rates.go. Two additions for traffic that the
// rules were not made for. An answer that comes in one piece (Dispatch.Whole) shows no first byte when prefill ends, so
// its work is taken as done when its predicted time is over, or when a request sent later gets its first byte, as vLLM
// prefills in order of arrival. Answers that are errors are no samples. Who is slow in a fleet that streams nothing is
// learnt from the workers' own metrics (speed.go, TestToldWhoIsSlow).
package worker
