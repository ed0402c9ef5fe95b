// Package upstream carries one request to one worker and its answer back, over HTTP/1.1.
//
// # Contract
//
// A [Client] belongs to one worker. Do sends a request and returns when the head of the final answer is there. The
// caller then reads the body from [Response], what one read of the connection gave at a time. Whatever way a response
// ends, the caller must call Close: it closes the connection of an answer that has not come to its end, which makes the
// worker stop. An answer that ends too early is io.ErrUnexpectedEOF, never io.EOF. The caller's goroutine does
// everything. Only a request over 64 KiB has a second one, until its answer begins.
//
// # How does an answer stay with its request?
//
// HTTP/1.1 counts: the n-th answer on a connection is that of the n-th request. A worker that sends one answer twice
// shifts all that follow. Bytes that come with an answer and behind it, or while the connection waits, are seen, and
// it is never used again (TestAnswersTooMany). Those that come once the next request has been sent look like its
// answer. So at its end a connection waits for the caller, who may know by what the answer says whose it is, and
// closes it after Reject. Retire then gives up all others, as what made one of them be out of step may have made more.
//
// # What may be repeated
//
// A connection from the pool may have died a moment ago. Before use a read that does not wait finds a connection that
// is known to be dead, and bytes that answer no request. A connection that dies later, without one byte of an answer,
// is replaced once by a fresh one: another one of the pool might be as dead. From the first byte on nothing is
// repeated. A request with a Tail cannot be sent twice, so it begins on a fresh connection. [NotSent] and
// [Unanswered] report what a caller may repeat at another worker.
//
// # Why not a library
//
// fasthttp's client puts an aborted stream back into its pool, where the next request reads the rest of somebody else's
// answer. It ends a truncated stream cleanly, loses every second request on a stale connection, and takes 103 for the
// final answer. net/http does none of these, but costs two goroutines and 27 KB a stream, and most of the CPU of a
// proxy. Both follow HTTP where a router has to be stricter: a reader that takes a bare LF for a line's end, or one of
// two lengths, can be made to see another answer than the worker's.
//
// A small request and its answer cost 1.3 times the CPU of bare sockets without HTTP, fasthttp's client 1.6 times,
// net/http's 3.3 times (BenchmarkSmall). A stream that waits holds 1.3 KB of heap (BenchmarkOpenStreams), and no
// goroutine.
//
// # Why so
//
// Why is no buffer held for a stream? The wait for the head may be a prefill of minutes: the buffer is taken only
// when there is something to read, by a read on the raw descriptor. After the head, reads go straight into the
// caller's buffer, and the chunk framing is taken off in place: no copy, and no system call for a chunk's size apart
// from its data.
//
// Why is a request sent inside the wait for its answer? Go's poller reads before it waits, and would find nothing. That
// read was a fifteenth of a request's CPU (firstRead.ask).
//
// Why are deadlines up to an eighth late? Moving a deadline takes the runtime's timer lock. One that may be late is
// moved once in d/8 instead of twice a request and once a read. FirstByte is exact.
//
// How does a cancel not hit the next request? An exchange holds its connection in one atomic pointer (claim). Whoever
// swaps it for nil owns the connection: the cancel, to close it, or the end, to pool it. TestAbortHammer holds that.
//
// Why [Life]? A context that can end costs three allocations and a sixteenth of a request's CPU by
// [context.AfterFunc]. A Life allocates nothing.
//
// Why 3.5 s of idle time? uvicorn closes after 5.0 s, and a request sent into that moment is lost if it may not be
// repeated.
//
// Why does TLS send no close_notify? It would wait for a worker that takes nothing. A worker that is cut off stops,
// which is the purpose. A connection is never half-closed either: vLLM takes that for a client that left.
package upstream
