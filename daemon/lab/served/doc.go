// Package served is the code that serves, as a router of a simulated fleet: a route.Pool with its worker.Pool, prefix
// index and sessions. It makes the calls to them that package exchange makes. Only the wire is missing. A request is a
// body that prompt.Parser reads, an answer is a stream that prompt.Reply reads, and a strategy is a module in the
// sandbox, or the same rule as plain Go ([Spec].Native).
//
// # What is set apart from the daemon
//
//   - Time comes from the simulation, chance from the seed, and the hashes' secret is fixed: see route.Config.
//   - The sandbox is stepped (host.Config.Stepped). A module gets its notices right when they happen, not milliseconds
//     later.
//   - Pages of metrics come as worker.Page and KV events as blocks.Stored. Their decoders are passed by, as they
//     decide nothing.
//   - Requests that wait for room wait in a list, and not on goroutines of package waiting. The queue is the daemon's.
//   - Sessions are kept in a map of one router, and not sent to the others.
//   - What several routers send each other goes through [peers.NewPair] without a Redis, and nothing of it is lost.
//
// # What is repeated
//
// A request whose worker died before its first token is sent to another one, by [route.Attempts]: the rule that the
// exchange goes by. What the exchange remembers of requests with which two workers ended is left out.
package served
