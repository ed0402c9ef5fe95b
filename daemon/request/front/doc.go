// Package front is the clients' side. It makes an [exchange.Inbound] of HTTP, and writes an [exchange.Outbound] to the
// wire. No other room but operator sees a type of fiber's or fasthttp's.
//
// # A request's way
//
//  1. Room listen accepts the connection, watches for a client that leaves, and gives each write a deadline.
//  2. fasthttp reads the header. No other code reads a request from a client's connection.
//  3. A request (request.go) begins before a byte of its body is read: see header.go. The header is cut into fields
//     once. What two readers may read differently is refused. The path is classified once (exchange.Classify); CORS,
//     keys, lengths and overload are answered. The request reads one [Epoch], and is served under no other. What
//     fasthttp and fiber refuse by themselves is answered in refused.go.
//  4. A bodyReader reads the body, up to server.buffer_body_bytes into memory. The rest of a longer one is streamed.
//     Package inflate decompresses a body with a Content-Encoding, up to max_body_bytes. The worker gets it
//     uncompressed, since vLLM decompresses none.
//  5. fasthttp writes an answer in one piece. A relay writes a stream, one write for each read of the worker's, on a
//     connection that it takes over from fasthttp. Afterwards the connection waits for the next request, and fasthttp
//     gets it back.
//  6. The request's end, once, counts it down and writes its line (access.go). Every request has one line and one
//     count, whether a worker or the router answered it (TestEveryAnswerIsCountedAndLoggedOnce).
//
// A tunnel is in place of 5 for a WebSocket that a worker has accepted. It passes bytes on in both directions, and uses
// no WebSocket library: that would take each frame apart, unmask it and mask it again, and hold buffers of 4 KB and
// more for each side. The tunnel follows where the worker's frames end, for there it may write a close frame of its own
// (TestWebSocketEnds). Without TLS it has one goroutine and no buffer while nothing comes (TestWebSocketMemory).
//
// What all requests share is the handler. Requests in flight are counted by traffic, which a drain waits for.
//
// # The access log
//
// No request waits for a line: room spool keeps lines while a pipe is not read or a disk hangs. Lines beyond its room
// are lost, counted and logged (TestNobodyReadsTheAccessLog). A line holds no prompt, no answer, no query and no key,
// and of a client's own words gate.MaxText bytes at most.
//
// # Tracing
//
// A request that is admitted goes to a tracer, if there is one (Config.Trace), and ends its span at its end.
//
// # Why these libraries
//
// fiber with fasthttp v1.73.0: the parser of the version that fiber asks for lets smuggled requests through. Nearly all
// requests bypass fiber's router and context, which cost 2 us each.
//
// why.md has the reasons and the details, and what lost.
package front
