// Package world simulates a fleet in virtual time: clients that send a load, routers that place it, and for each worker
// one engine of vllmsim/engine, the one that the simulated workers run over HTTP. A thousand seconds take one.
//
// # How time passes
//
// There is one clock, and one list of what is to come: arrivals, ends of steps, scrapes, ticks, and what befalls
// workers. [Run] takes the earliest, lets it happen, and goes on until every request has ended. Nothing sleeps, no
// goroutine runs, and things of one instant come in the order in which they were planned. So two runs of one seed are
// equal to the byte (TestTwoRunsAreEqual, in package lab).
//
// An engine computes its steps when something is to be seen of them: a first token, an end, a chunk of prefill. A
// stretch of decoding between two of those is one call, and the steps and their times are the same as in many. What a
// router learns then may be some milliseconds late where a preemption shortened a step within the stretch. An outcome
// has the engine's own times.
//
// # What a router is
//
// A [Router] gets the calls that a router of a fleet would get: a request arrives, its first token, its end, a page of
// metrics each scrape interval, a worker that went down or came up, KV events. Package served runs a route.Pool behind
// it, [Foreign] a rule of others. Each of several routers sees its own requests and all workers. With Config.History
// those that are a [Sharer] collect what they do for 10 ms, as the daemon's do, and the others have it so much later.
//
// why.md has the reasons and the details, and what lost.
package world
