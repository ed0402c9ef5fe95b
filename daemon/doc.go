// Package daemon is the process: HTTP in, HTTP out, and everything wired together.
//
// # Life of a request
//
//  1. server.go takes it from fiber as an [Inbound]: values only, no fiber type goes further.
//  2. exchange.go has the body read once (room prompt): model, stream, session key, the prompt's block hashes. Malformed
//     JSON goes on to a worker, whose 400 is the honest one.
//  3. The first pool whose patterns fit the model serves it. worker.Pool.Snapshot gives a row for each worker that is up
//     and lists the model; none: 503 or 404.
//  4. view.go fills what depends on the prompt: one walk of the prefix index for all rows, free room and chance of reuse.
//  5. A session key that is bound sets Header.Bound.
//  6. host.Current.Pick asks the strategy, a wasm module, for an ordered choice. Whatever goes wrong in there, the same
//     call answers with the host's own fallback.
//  7. send.go tries the choice in its order until one gives a response head: up to then nothing reached the client, and a
//     worker that refuses, or closes without a byte, costs only time. The prompt enters the index as soon as it is sent.
//  8. answer.go hands the body on as it comes, one read of the worker's a write to the client, and listens.
//  9. At its end, once, whoever ends it: the answer enters the index in the form in which the client will send it back, the
//     worker's count goes down, what was seen is learnt and measured.
//
// # Who owns what
//
// State has three owners with a lock each: worker.Pool (who is up, load, speed), prefix.Index (who holds what), session.Table
// (who is bound). A [pool] holds the three for one [[pools]] table and outlives reloads as long as its name stays. The set of
// pools is one atomic pointer; a request reads it once.
//
// # Why these libraries
//
// fiber with fasthttp v1.73.0: the parser of the version that fiber asks for lets smuggled requests through.
// prometheus/client_golang: the format has one well-kept implementation. Both are imported in this package alone.
package daemon
