// Package trial is the contract of the lab. It defines what a rule that places requests sees ([Chooser]), and what one
// simulated run leaves ([Run]). It computes sums of a run and nothing else, so that rules, simulation and reports need
// not know each other.
//
// # What a chooser sees
//
// A chooser gets what a router of its kind would know, and no more: each [Request] when it arrives, a [View] of each
// worker, and a call when a request was sent, had its first token and ended. Memory of what was routed before is the
// chooser's own. What a worker reports of its load is as old as the last scrape. A chooser that follows KV events
// implements [Hearer] too.
//
// The strategies of this project do not go by this contract. They run in a route.Pool, as in the daemon. It is for the
// rules of others, to which they are compared.
//
// # Time
//
// All times are simulated, since the run began. A chooser reads no clock and draws no chance but from a source that it
// seeds itself: two runs of one seed must be equal to the byte.
//
// why.md has the reasons and the details, and what lost.
package trial
