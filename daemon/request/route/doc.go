// Package route decides for one pool which worker a request goes to, and learns from how that ended.
//
// # A request's way through it
//
//  1. [Pool.Arrive] counts the request: its turn among those for its model, and its share of the retry budget. A
//     request that is refused before the strategy is asked gives the turn back ([Pool.GiveBack]).
//  2. [Pool.Choose] looks for the request's session, gets a row for each worker that may serve it, matches the prompt
//     against the prefix index, and asks the strategy for an ordered choice. It changes nothing: a caller that only
//     wants to know ([Ask] with the turn of [Pool.Turn]) calls it and drops the [Choice] (TestADryRunChangesNothing).
//  3. [Choice.Bind] binds a session that is free, or moves one whose worker is down. Another request, here or at a
//     second router, may have bound it first; then that worker comes first.
//  4. [Choice.Next] gives the workers in the order of the choice, and once, when all of these have failed, those that
//     were left out. The second look fills its rows anew, the matches too. [Choice.Send] takes a worker's place for the
//     request and enters the prompt in the index at once, as answers come too late for the next request. If the worker
//     then fails or refuses the request before its first byte, the entry is taken back: it would draw further requests
//     to a worker that holds nothing of it.
//  5. After an attempt without an answer [Attempts.After] decides what is tried: the next worker, the same one again,
//     or nothing more (TestAttemptsAfter).
//  6. [Choice.Answered] confirms the session's binding or takes it back. [Trip.End] closes it: the answer's text
//     enters the index, the engine's own counts correct the estimates, the worker's count goes down.
//
// A [Record] describes all of this as plain values. [Record.Note] is cheap and runs for every request; [Record.Explain]
// adds the candidates. Headers, logs and pages read the record, and nothing else.
//
// # Files
//
// ask.go defines what a request asks for. stay.go finds out what becomes of its session, and bind.go binds it. fleet.go
// has the rows, and match.go fills what depends on the prompt: tiers.go adds routed history of CPU memory and the
// shared tier, held.go what the workers themselves report. frame.go copies the request's own fields into the frame,
// known.go answers a module's questions. order.go is the order of the workers, home.go the order that every router
// gives them. choice.go puts these together, entered.go writes the prompt into the index and takes it back, trip.go
// gives the feedback, explain.go fills the record. A [Pool] keeps
// what outlives a request: turns.go, scale.go and capacity.go.
//
// # Reports or history
//
// By default a row has routed history. It has the worker's own reports if the strategy asks for them, the prompt's ids
// are known, and the worker's events are live. Then one block of all rows is one token, since engines have blocks of
// different sizes. History is kept all the same: it serves when a worker's events stop. A transfer from CPU memory or a
// shared tier is estimated with the prefill, or it would be learnt as slowness.
//
// # Tiers below the GPUs
//
// What it is worth to know of them, in simulated time on 7 workers: mean / P90 of TTFT in seconds, and the part of the
// prompts' tokens that was found. "One number" is a router that takes each GPU to be as large as its CPU tier. Seeds
// 101-105 for G and L, 101-103 for the others; `warmpath lab G L --seeds 101-105 --strategy
// prefixaware,prefixaware@flat,roundrobin` gives the first two.
//
//	scenario                      prefixaware         one number          roundrobin
//	G         64k, CPU tier 4x    2.48 /  7.98  .81   2.46 /  8.01  .81   47.6 / 115   .22
//	L         32k, 2x, shared 40x  .77 /  2.87  .82    .84 /  2.97  .82   1.25 / 3.08  .82
//	conv+cpu  a trace, 8x         6.51 / 13.6   .29   6.62 / 14.6   .29   56.9 / 105   .10
//	syn+cpu   8x                   .31 /   .39  .72    .31 /   .39  .72   1.77 / 4.96  .40
//
// # Sessions
//
// The table at [state] lists what becomes of each session. A live binding is honoured under every strategy. While the
// store of sessions is silent, the sessions that this router holds go on. The router refuses any other opened session
// or stored response: it never answers that it does not exist, and never serves it elsewhere. Any other key goes to the
// worker that every router chooses alike (home.go), and returns to its own worker when the store answers.
//
// # Several routers
//
// A [Teller] publishes what a Trip does to the books: sent, first byte, answer, end. Another router's [Pool.Hear] does
// the same to its own books, with the same hashes if they share a [Secret], but learns no speeds from it. What comes
// late is entered with its own time: the index is what it would be if nothing had been late (TestHearingIsDoing).
//
// # Rules
//
// The room is silent: no socket, no clock, no goroutine, no log. Time comes in, and verdicts go out. So its tests
// need no daemon, and a backtest can run it in virtual time. Workers' connections, waiting and HTTP are the
// exchange's. A [Pool] is safe for concurrent use; a [Choice] and its [Trip] belong to one request.
//
// # What lost
//
// Sending from here: a backtest and a shadow strategy would need sockets. One interface over worker, prefix and host:
// it was wider than the three types. Advancing the turn with the choice: a dry run would move the next request.
package route
