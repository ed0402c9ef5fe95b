// Package front is the clients' side. It makes an [exchange.Inbound] of HTTP from fiber and fasthttp, and writes an
// [exchange.Outbound] to the wire. No other room but operator sees a type of theirs.
//
// # A request's way
//
//  1. Room listen accepts the connection, watches for a client that leaves, and gives each write a deadline.
//  2. A sentry (early.go) judges the header before fasthttp waits for a body: keys, lengths, overload.
//  3. A visit (visit.go) takes the request over, called by attend.go. framing.go refuses what two readers may read
//     differently. The path is classified once (exchange.Classify); CORS and keys are answered. The visit reads one
//     [Epoch], and is served under no other. What fasthttp and fiber refuse by themselves is answered in refused.go.
//  4. An intake reads the body, up to server.buffer_body_bytes into memory. The rest of a longer one is streamed.
//  5. An answer in one piece goes back through fasthttp. A relay writes a stream, one write for each read of the
//     worker's, on a connection that it takes over from fasthttp and gives back.
//  6. The visit's end, once, counts the request down and writes its line (access.go). Every request has one line and
//     one count, whoever answered it (TestEveryAnswerIsCountedAndLoggedOnce).
//
// A visit knows no Server: what all visits share is a reception. Requests in flight are counted by traffic, which a
// drain waits for.
//
// # The access log
//
// No request waits for a line: room spool keeps lines while a pipe is not read or a disk hangs. Lines beyond its room
// are lost, counted and logged (TestNobodyReadsTheAccessLog). A line holds no prompt, no answer, no query and no key,
// and of a client's own words gate.MaxText bytes at most.
//
// # Tracing
//
// A visit that is admitted is shown to a tracer, if there is one (Config.Trace), and ends its span at its end.
//
// # Why these libraries
//
// fiber with fasthttp v1.73.0: the parser of the version that fiber asks for lets smuggled requests through. The
// requests that are nearly all of them pass by fiber's router and context, which cost 2 us each.
package front
