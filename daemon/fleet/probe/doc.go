// Package probe asks workers for their /health, /v1/models and /metrics. It passes each answer to a [Sink] with
// the time at which it came, and draws no conclusion: the sink decides which worker is up and how fast it is.
//
// # Rules
//
//   - A worker is known by a number that its owner chose and never gives twice. So an answer that comes late, when its
//     worker was already replaced under the same name, is discarded.
//   - Each worker has three loops. One checks its health every HealthInterval and wakes the second on every fifth good
//     check, which reads its models. The third reads its metrics every ScrapeInterval while it is up. Intervals vary by
//     a tenth, so that the probes of many workers do not fall together.
//   - A worker at which no request is, in a pool that is not small, is asked less often: worker.Phase has the pause. If
//     that is 5 s or more, its health check and its scrape are one visit, on one connection. Each question apart cost
//     .5 ms of processor time. The first request to a worker has it asked at once (TestIdleWorkersAreVisited).
//   - A router that shares a history asks only its part of the workers, as long as others publish what they saw of the
//     rest (worker.Phase). A pool gets 500 questions of each kind a second at most. In a process whose timers are late
//     pauses are up to twice as long, since requests come first. A prober begins 1,000 questions a second at most, by
//     the limiter of golang.org/x/time/rate: 10,000 workers are up within a minute of a start
//     (TestManyWorkersTakeTurns).
//   - A worker that is not up is checked twice a second, whatever the interval: it is used again within 2 s of being
//     able to answer (TestReturnOnSocket).
//   - A worker that comes up is asked how many engines it has before it is reported healthy, if the sink wants that:
//     by its metrics, where each engine has a label, else by /kv_event_sources. It is up half a second later for each
//     question that it leaves unanswered (TestEnginesBySources). One page of metrics serves all engines.
//   - CheckSoon asks for a check at once, because a request failed there. A worker gets at most five a second, however
//     many requests fail (TestFailuresDoNotFlood).
//   - ListSoon asks for the models at once, because an adapter may have come or gone. A worker is asked at most five
//     times a second (TestListSoonDoesNotFlood), and a call during a reading is answered by another reading
//     (TestListSoonDuringAReading).
//   - A page of metrics shows by its names which engine wrote it (names.go). One that none of them wrote is an error.
//   - An error that is handed on names no address and no URL: a client may see it on /ready, and a URL may hold a
//     password.
//
// why.md has the reasons and the details, and what lost.
package probe
