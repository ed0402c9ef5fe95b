// Package upstream carries one request to one worker and its answer back, over HTTP/1.1.
//
// # Contract
//
// A [Client] belongs to one worker. Do sends a request and returns when the head of the final answer is there; the body is
// then read from [Response], what one read of the connection gave at a time. Whatever way a response ends, Close must be
// called: it closes the connection of an answer that has not come to its end, which tells the worker to stop. An answer that
// ends too early is io.ErrUnexpectedEOF, never io.EOF. Everything is done by the caller's goroutine; only a request
// over 64 KiB has a second one, until its answer begins.
//
// # What may be repeated
//
// A connection from the pool may have died a moment ago. Before use it is asked by a read that does not wait, which finds
// what is known to be dead, and bytes that nobody asked for. What dies later, without one byte of an answer, is replaced
// once by a fresh connection: another one of the pool might be as dead. From the first byte on nothing is repeated. A request
// with a Tail cannot be sent twice, so it begins on a fresh connection: a dial is little beside an upload. What a caller may
// repeat elsewhere is told by [NotSent] and [Unanswered].
//
// # Why not a library
//
// fasthttp's client puts an aborted stream back into its pool, where the next request reads the rest of somebody else's
// answer; it ends a truncated stream cleanly, loses every second request on a stale connection, and takes 103 for the
// final answer. net/http does none of these, but costs two goroutines and 27 KB a stream (117 KB with buffers that take an
// answer in one read), and most of the CPU of a proxy. Both follow HTTP where a router has to be stricter: who takes a bare LF for a line's end, or one of two lengths, can be
// made to see another answer than the worker's.
//
// CPU of the whole process for a request of 1 KB and its answer of 1 KB over loopback, the test's worker included
// (BenchmarkSmall, 2 cores at 2.8 GHz; cpu-ns/op, as wall time on a shared machine says little):
//
//	bare sockets, no HTTP   14.6 us
//	this package            18.9 us    2 allocations and that of the Request
//	fasthttp 1.73           22.9 us    1 allocation; streaming 5
//	net/http                48.5 us   58 allocations
//
// An event of a stream costs 33 ns of decoding, 190 bytes of copying included (BenchmarkDecode). A stream that is waited on
// holds 1.3 KB of heap, both ends in one process (BenchmarkOpenStreams), and no goroutine.
//
// A profile of Do gives six tenths to the kernel, most of it the one write. The probe of the pooled connection takes 9 %: what 0
// poisoned and 0 lost requests cost. Reading that there is no answer yet, which Go's poller asks for, took 7 %: a request on a
// pooled connection is therefore sent inside the wait for its answer (conn.ask). A context that can end takes 6 % (0.25 us, 3
// allocations) unless it is a [Life]; parsing and checking both heads 8 %.
//
// # Why so
//
// Why is no buffer held for a stream? The wait for the head may be a prefill of minutes: the buffer is taken only when there
// is something to read, by a read on the raw descriptor. After the head, reads go straight into the caller's buffer, and
// the chunk framing is taken off in place: no copy, and no system call for a chunk's size apart from its data.
//
// Why are deadlines up to an eighth late? Moving a deadline takes the runtime's timer lock. One that may be late is moved
// once in d/8 instead of twice a request and once a read. FirstByte is exact.
//
// How does a cancel not hit the next request? An exchange holds its connection in one atomic pointer. Who swaps it for nil
// owns the connection: the cancel, to close it, or the end, to pool it. A cancel that comes late finds nil. 100,000 streams
// aborted among 350,000 other requests on the same pool: 0 poisoned (go test -run Hammer -hammer 100000).
//
// Why 3.5 s of idle time? uvicorn closes after 5.0 s, and a request sent into that moment is lost if it may not be repeated.
//
// Why is TLS closed without a farewell? It would wait for a worker that takes nothing; a worker that is cut off stops, which is
// the purpose. A connection is never half-closed either: vLLM takes that for a client that left.
package upstream
