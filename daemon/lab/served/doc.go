// Package served is the code that serves, as a router of a simulated fleet: a route.Pool with its worker.Pool, prefix
// index and sessions. It makes the calls to them that package exchange makes. Only the wire is missing. A request is a
// body that prompt.Parser reads, an answer is a stream that prompt.Reply reads, and a strategy is a module in the
// sandbox, or the same rule as plain Go ([Spec].Native).
//
// # What is repeated
//
// A request whose worker died before its first token is sent to another one, by [route.Attempts]: the rule that the
// exchange goes by. What the exchange remembers of requests with which two workers ended is left out.
//
// why.md has the reasons and the details, and what lost.
package served
