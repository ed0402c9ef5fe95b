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
// shifts all that follow. Bytes that come with an answer and behind it, or while the connection waits, are seen, and it
// is never used again (TestAnswersTooMany). Those that come once the next request has been sent look like its answer.
// So a connection waits for the caller at the end of an answer. The caller may know from the answer to which request it
// belongs. If it calls Reject, the connection is closed. Retire then gives up all others, as what made one of them be
// out of step may have made more.
//
// # What may be repeated
//
// A connection from the pool may have died a moment ago. Before use a read that does not wait finds a connection that
// is known to be dead, and bytes that answer no request. A connection that dies later, without one byte of an answer,
// is replaced once by a fresh one: another one of the pool might be as dead. Nothing is repeated once the first byte
// has come. A request with a Tail cannot be sent twice, so it begins on a fresh connection. [NotSent] and [Unanswered]
// report what a caller may repeat at another worker.
//
// # Why
//
// A stream that waits holds no buffer, deadlines may be up to an eighth late except for FirstByte, idle connections
// close after 3.5 s, and TLS sends no close_notify. why.md has the reason for each, and why this is not a library's
// client.
package upstream
