// Package worker is the pool of vLLM workers behind one [[pools]] table: who is up, what was sent where, how loaded and
// how fast each one is. It fills the rows a strategy chooses from, all fields that do not depend on the prompt; what a
// worker's cache holds is the prefix index's to say.
//
// # One lock
//
// A pool has one mutex. A request takes it four times (Snapshot, Begin, FirstByte, End), for well under a microsecond each
// at 16 workers and some microseconds in Snapshot at 256 (BenchmarkSnapshot, BenchmarkBeginEnd); nothing is read from the
// network under it. Atomics a worker lost: W, pend and its head must be read together or W jumps, and the rules of
// learning need the order of first bytes. Hooks and log lines run after the lock is given back, so a hook may call the
// pool; two changes of one worker that race may then be told in either order, and the hooks only drop or hint.
//
// # Slow is not dead
//
// A worker is up from its first good /health on. It goes down at once when nothing listens or its health says 5xx, and
// after two silent health checks if no byte of an answer came from it for five seconds: a worker deep in prefill answers
// /health late, and taking it out throws its cache away and buries the next. Five failed answers in a row eject it for a
// back-off that doubles from one health interval, never more than half of the fleet: if all fail, the fault is not theirs.
// Down is death (its queue is forgotten, OnDown lets the index forget its cache, it returns as fast as the fleet); ejected
// is not: its cache stays believed.
//
// # What is learnt
//
// W, m, rho and lambda are kept by the rules of queue.go and learn.go, on times that callers pass in; they never read a
// clock. Two additions for traffic that the rules were not made for: an answer that comes in one piece (Dispatch.Whole)
// shows no first byte when prefill ends, so its work is taken as done when its predicted time is over, or when a request
// sent later gets its first byte, vLLM prefilling in order of arrival; and answers that are errors are no samples.
//
// # Why /metrics is read by an own scanner
//
// Eight names of the 700 lines in vLLM's page matter. github.com/prometheus/common/expfmt makes a protobuf of every histogram
// bucket to find them and brings protobuf and an ABNF engine into this room; the scanner skips a line after its name
// (BenchmarkParseMetrics has the time a page) and is held by pages recorded from two vLLM releases and by a fuzz test.
package worker
