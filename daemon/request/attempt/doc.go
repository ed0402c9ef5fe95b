// Package attempt is one try of a request at one worker. It sends the request, reads the answer, and decides whether
// the client gets that answer or another worker is to be asked. Package exchange chooses the workers, and makes an
// [Attempt] for each; a [History] has what those before have left.
//
// # Life of an attempt
//
//  1. [Attempt.Begin] takes a place at the worker: a route.Trip, which ends once, whatever happens.
//  2. [Attempt.Send] sends the request. Until the first byte the attempt may be ended for another worker: the byte is
//     late, the worker is down or silent (GiveUp), or the prefiller beside it has failed (Unfill). diagnose.go says
//     what an error of the transport means for the request and for the worker.
//  3. The head has come, and the answer is a draft: draft.go reads a small one whole, and a stream up to its first
//     output. signs.go finds what it shows against its worker: vLLM reports many failures inside a 200. weigh.go and
//     length.go decide whether the client gets it all the same. The ids in the answer are compared with the request's,
//     where the worker's have held it before (epoch.Habit): a connection that is out of step gives each client
//     another's answer. Such an answer is discarded.
//  4. Send returns a [Failure], and the attempt is over, or it returns the client's answer. Up to here the client has
//     seen nothing, and a worker that refuses, closes or fails costs only time.
//  5. stream.go hands a stream on, whole events at a time (splitter.go). What fails from here on is an error event, and
//     the connection never ends cleanly after it. A worker's own error event goes to the client as it is.
//  6. ending.go: at its end, once, the route learns, the worker's count goes down, and the [journal.Meter] counts.
//
// # Whose fault it is
//
// history.go notes which workers have failed the request. If a second one fails it in the same way, the fault is the
// request's; if one accepts it, the fault is the first worker's. [route.Attempts] decides what is tried next.
//
// # Memory
//
// An [Attempt] is one allocation with its answer, the response and the worker's ticket. The first one of a request is
// part of its exchange. A further one is apart, as a late callback may still look at the first. What lost: a
// bufio.Reader around a stream, which would pass on half events, after which no error event can follow.
package attempt
