// Package route decides for one pool which worker a request goes to, and learns from how that ended.
//
// # A request's way through it
//
//  1. [Pool.Arrive] counts the request: its turn among those for its model, and its share of the retry budget. A
//     request that is refused before that gives the turn back ([Pool.GiveBack]).
//  2. [Pool.Choose] looks for the request's session, has the filters say which workers it may use (filter.go), gets a
//     row for each of these that may serve it, matches the prompt against the prefix index, and asks the strategy for
//     an ordered choice. It changes nothing: a caller that only wants to know ([Ask] with the turn of [Pool.Turn])
//     calls it and drops the [Choice] (TestADryRunChangesNothing).
//  3. [Choice.Bind] binds a session that is free, or moves one whose worker is down. If another request has bound it
//     meanwhile, that worker comes first.
//  4. [Choice.Next] gives the workers in the order of the choice, and once, when all of these have failed, those that
//     were left out. The second look fills its rows and matches again. [Choice.Send] counts the request at the worker
//     and enters its prompt in the index. If the worker then fails or refuses the request before its first byte, the
//     entry is taken back.
//  5. After a failed attempt [Attempts.After] decides what is tried next.
//  6. [Choice.Answered] confirms the session's binding or takes it back. [Trip.End] enters the answer's text in the
//     index, corrects the estimates by the engine's own counts, and takes the request off the worker's count.
//
// A record.Record describes all of this as plain values. Headers, logs and pages read it and nothing else.
// [Choice.Note] runs for every request; [Choice.Explain] adds the candidates.
//
// # Reports or history
//
// A row has routed history, or the worker's own reports if the strategy asks for them, the prompt's ids are known, and
// the worker's events are live.
//
// # Sessions
//
// The table at [state] lists what becomes of each session. A live binding is honoured under every strategy. While the
// store of sessions is silent, the sessions that this router holds go on. The router refuses any other opened session
// or stored response: it neither answers that it does not exist nor serves it elsewhere. Any other key goes to the
// worker that every router chooses alike (home.go), and returns to its own worker when the store answers.
//
// # Several routers
//
// A [Teller] publishes what a Trip does to the books. [Pool.Hear] does the same to the books of another router, as of
// the time at which it happened, but learns no speeds from it (TestHearingIsDoing).
//
// # Rules
//
// The package has no socket, no clock, no goroutine and no log: callers pass the time in. So a simulation can run it in
// virtual time. A [Pool] is safe for concurrent use; a [Choice] belongs to one request.
//
// # Why
//
// why.md has what the tiers below the GPUs are worth, why history is kept beside reports, and what lost.
package route
