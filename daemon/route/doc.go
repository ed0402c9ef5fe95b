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
//     request and enters the prompt in the index at once, as answers come too late for the next request.
//  5. [Choice.Answered] confirms the session's binding or takes it back. [Trip.End] closes it: the answer's text
//     enters the index, the engine's own counts correct the estimates, the worker's count goes down.
//
// A [Record] describes all of this as plain values. [Record.Note] is cheap and for every request, [Record.Explain] adds
// the candidates. Headers, logs and pages read the record, and nothing else.
//
// # Files
//
// ask.go says what a request wants, stay.go what becomes of its session, bind.go makes that last. fleet.go has the
// rows, match.go fills what depends on the prompt: tiers.go adds what history knows of CPU memory and shared tier,
// held.go what the workers themselves report. frame.go has what the request says of itself, known.go answers a
// module's questions. order.go is the order of the workers, home.go the order that every router gives them. choice.go
// puts these together, trip.go gives the feedback, explain.go fills the record. A [Pool] keeps what outlives a
// request: turns.go, scale.go and capacity.go.
//
// # Whose word counts
//
// A row has routed history, unless the strategy wants more, the prompt's ids are known, and the worker's events are
// live. Then one block of all rows is one token, since engines have blocks of different sizes, and the live rows have
// what their workers report. History is kept all the same: it is what serves when a worker's events stop. A transfer
// from CPU memory or a shared tier is estimated with the prefill, or it would be learnt as slowness.
//
// # Sessions
//
// The table of what a session's state means stands at [state]. A live binding is honoured under every strategy. While
// the store of sessions is silent, what this router holds goes on. Any other opened session or stored response is
// refused: it is never said not to exist, and never served elsewhere. Any other key goes to the worker that every
// router chooses alike (home.go), and comes home when the store answers.
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
