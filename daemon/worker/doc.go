// Package worker is the pool of vLLM workers behind one [[pools]] table: who is up, what was sent where, how loaded and
// how fast each one is. It fills the rows a strategy chooses from, all fields that do not depend on the prompt; what a
// worker's cache holds is the prefix index's to say.
//
// # One lock
//
// A pool has one mutex. A request takes it four times (Snapshot, Begin, FirstByte, End), for well under a microsecond
// each at 16 workers and some microseconds in Snapshot at 256 (BenchmarkSnapshot, BenchmarkBeginEnd); nothing is read
// from the network under it. Atomics a worker lost: W, pend and its head must be read together or W jumps, and the
// rules of learning need the order of first bytes. Hooks and log lines run after the lock is given back, so a hook may
// call the pool; two changes of one worker that race may then be told in either order, and the hooks only drop or hint.
//
// # Slow is not dead
//
// A worker is up from its first good /health on. It goes down at once when nothing listens or its health says 5xx, and
// after two silent health checks if no byte of an answer came from it for five seconds: a worker deep in prefill
// answers /health late, and taking it out throws its cache away and buries the next. Each check is on a connection of
// its own, so that a closed port is seen at the next one. Down is death: its queue is forgotten, OnDown lets the index
// forget its cache, it returns as fast as the fleet. What is not death is a breaker (breaker.go), and its cache stays
// believed:
//
//   - Five failed answers in a row eject it for a back-off that doubles from one health interval to 30 s, never more
//     than half of those that are there: if all fail, the fault is not theirs.
//   - An answer that tells that the worker is going (finish_reason "abort", a bare [DONE]) takes it for draining.
//     /health and /metrics of a vLLM that drains are as good as ever, so nothing else tells; what it is sent meanwhile
//     comes back empty, so half of the fleet is no bound here. It ends with the process: down and up again, or another
//     start time in /metrics. An engine that was only paused has no new process: it is tried after 5 s, doubling to 60.
//
// After the back-off there is one trial request at a time, and its end decides. Not several: what a broken worker is
// sent is a client's request, and must be repeated elsewhere.
//
// # Who waits at a worker that went down
//
// A process that shuts down closes its port and answers what it has; one that hangs while it does keeps the
// connections, silent. So a fall begins a grace for the requests in flight there (grace.go): each byte of an answer
// begins it anew, a return of the worker ends it, and who is silent to its end is told to give up. A removed worker is
// watched for that until its last request.
//
// # Coming back
//
// A worker that is not up is asked twice a second, whatever the health interval, and the first request after it is up
// may go there. How fast it gets more is slowstart.go's: 10 workers with streams of 20 s, 200 requests a second,
// "fewest in flight" as the strategy: one that is back gets 2, 3, 5 ... 19 a second in its slow start, then 40, twice
// its share, until it has caught up. Without doses it got 200 a second, all there were, for two seconds, and a slow
// start that was a hint to the strategy alone was heeded by those that look for it.
//
// # What a failure may cost
//
// budget.go bounds repeats, MaxInFlight what a worker has at a time: Snapshot leaves full workers out, and TryBegin
// keeps the limit when two saw one free place. When nobody is up and Panic is set, everybody is offered: a fault of the
// health checks must not be worse than that of the fleet.
//
// # What is learnt
//
// W, m, rho and lambda are kept by the rules of queue.go and learn.go, on times that callers pass in; they never read a
// clock. Two additions for traffic that the rules were not made for: an answer that comes in one piece (Dispatch.Whole)
// shows no first byte when prefill ends, so its work is taken as done when its predicted time is over, or when a
// request sent later gets its first byte, vLLM prefilling in order of arrival; and answers that are errors are no
// samples. Who is slow in a fleet that streams nothing is learnt from the workers' own metrics (told.go,
// TestJSONFleetLearnsWhoIsSlow of the daemon).
//
// # Why /metrics is read by an own scanner
//
// Some fifteen names of the 700 lines in vLLM's page matter. github.com/prometheus/common/expfmt makes a protobuf of
// every histogram bucket to find them and brings protobuf and an ABNF engine into this room; the scanner skips a line
// after its name (BenchmarkParseMetrics has the time a page) and is held by pages recorded from two vLLM releases and
// by a fuzz test.
package worker
