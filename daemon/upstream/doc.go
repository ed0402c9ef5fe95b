// Package upstream carries one request to one worker and its answer back.
//
// # Contract
//
// A [Client] belongs to one worker. Do sends a request and returns when the final response head is there; the body is then
// read from [Response]. Whatever way a response ends, Close must be called: it cancels what is still running at the worker
// and gives the connection back only if the body was read to its end. An answer that ends too early is
// io.ErrUnexpectedEOF, never io.EOF.
//
// # Why net/http underneath
//
// The first form rests on net/http's Transport. It costs more CPU than fasthttp's client, but fasthttp's puts an aborted
// stream back into its pool, where the next request reads the rest of somebody else's answer, ends a truncated stream
// cleanly, and takes 103 for the final answer. net/http does none of these. The interface knows nothing of it, so that a
// transport of our own can take its place.
//
// Worker connections idle at most 4 s: uvicorn closes them after 5.0 s, and a request sent into that moment is lost. If
// the worker closes a pooled connection without one byte of an answer, the transport repeats the request once on another
// connection; the worker cannot have answered it.
package upstream
