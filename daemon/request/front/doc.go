// Package front is the clients' side. It makes an [exchange.Inbound] of HTTP, and writes an [exchange.Outbound] to the
// wire. No other room but operator sees a type of fiber's or fasthttp's.
//
// # A request's way
//
//  1. Room listen accepts the connection, watches for a client that leaves, and gives each write a deadline.
//  2. A lane (lane.go) reads the request, if it is of the plainest form and not encrypted (plain.go). Every other is
//     fasthttp's, and a sentry (early.go) judges its header before fasthttp waits for a body: keys, lengths, overload.
//  3. A visit (visit.go) takes the request over, called by attend.go. It knows of lane and fasthttp no more than that
//     each is a way (way.go). framing.go refuses what two readers may read differently. The path is classified once
//     (exchange.Classify); CORS and keys are answered. The visit reads one [Epoch], and is served under no other. What
//     fasthttp and fiber refuse by themselves is answered in refused.go.
//  4. An intake reads the body, up to server.buffer_body_bytes into memory. The rest of a longer one is streamed.
//     A body that the client packed (Content-Encoding) is unpacked by room inflate, max_body_bytes at most, and goes on
//     as one that was never packed: vLLM unpacks none.
//  5. An answer in one piece goes back the way that its request came. A relay writes a stream, one write for each read
//     of the worker's, on a connection that it takes over and gives back to a lane.
//  6. The visit's end, once, counts the request down and writes its line (access.go). Every request has one line and
//     one count, whoever answered it (TestEveryAnswerIsCountedAndLoggedOnce).
//
// A visit knows no Server: what all visits share is a reception. Requests in flight are counted by traffic, which a
// drain waits for.
//
// # The lane
//
// Nearly all requests are a POST below /v1/ in HTTP/1.1 whose head comes in one piece, with one Host, one
// Content-Length, and no field that asks for another reading. A lane serves those without fasthttp's reader, writer and
// context, and with one parse in place of two: .88 of a request of 1 KB. It judges nothing unusual: fasthttp then gets
// the connection with the bytes unread, and keeps it until a stream has ended there or nothing has come for a second.
// fasthttp also gets a request that a sentry would turn away, what was sent ahead of an answer, and a connection on
// which nothing comes (408).
//
// fasthttp reads every head that a lane takes in the same way, to the first byte of the next request (FuzzPlainHead).
// Clients read the same answers either way (TestBothWays). A lane that waits holds no memory to read into. After a
// second or two its wait goes on in a new goroutine with a small stack.
//
// # The access log
//
// No request waits for a line: room spool keeps lines while a pipe is not read or a disk hangs. Lines beyond its room
// are lost, counted and logged (TestNobodyReadsTheAccessLog). A line holds no prompt, no answer, no query and no key,
// and of a client's own words gate.MaxText bytes at most.
//
// # Tracing
//
// A visit that is admitted goes to a tracer, if there is one (Config.Trace), and ends its span at its end.
//
// # Why these libraries
//
// fiber with fasthttp v1.73.0: the parser of the version that fiber asks for lets smuggled requests through. Nearly all
// requests bypass fiber's router and context, which cost 2 us each.
package front
