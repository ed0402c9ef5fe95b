// Package replay plays a recorded trace of requests against a running daemon over HTTP, once for each model name, and
// reports what the routing was worth: block hit rate, time to first token, and how evenly the prefill work was spread
// over the workers. It is what `warmpath replay` runs.
//
// # When it is sent
//
// Arrivals are an open loop: a request leaves at its time in the trace, divided by the speed, whether or not earlier
// ones were answered. A closed loop would slow down with the daemon, and make the slower strategy look better. One
// bound breaks the rule, [Config].MaxInFlight, as sockets are finite. A run that reached it reports for how many
// requests, since its times are then understated.
//
// Sessions are the exception: an agent's next request cannot come before the answer that it builds upon. Where the
// trace names sessions, a request waits for the end of the answer before it in its own, and for the delay that the
// trace gives from there. Its header X-Session-Id names the session, as agents do.
//
// # What is measured
//
// Times are in trace time: wall time multiplied by the speed, from the moment the client sends to the first event that
// carries output. Simulated workers must run at the same speed. Hits are those that the worker reports in its usage, in
// whole KV blocks of 16 tokens: what it really did not compute, not what the router believed. Prefill work is computed
// here from the tokens that were not cached, with the router's cost model (see [PrefillSeconds]), and counted for the
// worker named by the header X-Warmpath-Worker, which the daemon sends when X-Warmpath-Explain: 1 is asked for.
//
// why.md has the reasons and the details, and what lost.
package replay
