// Package judge decides about the health of a worker, by what its requests, its health checks and its metrics show. It
// knows one worker at a time and changes nothing but its own state: package worker reports what happened, and carries
// out the Verdict. It sends nothing and reads no clock. Every time is a time.Duration since the pool began, and 0 means
// never: a time.Time is three words long, and with it the choice of a worker took half as long again.
//
// # Which file has what
//
//   - health.go: Health, which has all that is known of the process at one address.
//   - evidence.go: the table of signs that requests bring, and what each proves. verdict.go applies it at the end of a
//     request. record.go has what the worker refuses, by class of requests.
//   - checks.go: the health checks. process.go: the start times on pages of metrics.
//   - engine.go: how an engine shows that it hangs or works.
//   - breaker.go, headroom.go, slowstart.go: how a worker is kept from requests, and how it gets them back.
//   - failures.go: whether a failure is the worker's or the request's. budget.go: how many requests are repeated.
//
// # Rules
//
//   - One request takes no worker out. If it fails in the same way at a second worker, it no longer counts against the
//     first (Acquit). A refusal counts for its kind, once another worker accepts the request (Confirm).
//   - A silent worker is not dead. A worker is up from its first good health check on. It is down at once when nothing
//     listens, and after two answers of 500 or more to its checks. Two late checks in a row make it silent, unless a
//     byte of an answer came within five seconds.
//   - The caller sees to it that suspicion never empties a pool: at most half of its workers are set aside.
//
// For lesser faults than death there is a breaker. It opens for a back-off that doubles, and then lets one trial
// request at a time through, whose end decides. why.md of package worker has the reasons, what was measured, and what
// lost.
package judge
