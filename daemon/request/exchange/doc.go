// Package exchange serves one request from its header and body to the last byte of its answer. It knows no HTTP
// library: an [Inbound] comes in, an [Outbound] goes out, and between them lies a request at a worker (room upstream).
//
// # Life of a request
//
//  1. The front calls [Classify], which returns who answers at the path. An [Epoch] comes with the request:
//     configuration, pools and settings of the instant of its arrival. The request is served under no other.
//  2. permit.go reads the body once (room prompt): model, stream, session key, prompt. Malformed JSON goes on to a
//     worker, whose 400 is the honest one. A key with a list of models is refused what a worker may read otherwise than
//     this router does (TestReadingForbids). Where a request cannot be routed or permitted without more of a long body,
//     readon.go has room overflow keep it, and reads again: until the model has come, or to the end. A body that was
//     kept whole is repeated as any other.
//  3. lethal.go refuses a request with which two workers have ended. claim.go reads which session the request claims.
//     For a strategy that goes by what the workers hold, ids.go gets the prompt's token ids (room tokens), within a
//     budget of time. choose.go asks the pool's route for a choice. While the verdict is that a first health check is
//     still to come, choose.go waits and asks again: a choice changes nothing.
//  4. exchange.go tries the workers in the order of the choice. Up to the first output nothing has reached the client,
//     and a worker that refuses, closes or fails costs only time. [route.Attempts] decides what is tried next.
//     attempts.go keeps who has failed the request: a second worker that fails it alike shows that the fault is the
//     request's, and one that accepts it shows that it is the worker's.
//  5. body.go reads a small answer whole, and stream.go a stream up to its first output. signs.go reads what the
//     answer shows against its worker: vLLM reports many failures inside a 200. weigh.go decides whether the client
//     gets the answer all the same, or another worker is asked. If all give up, the client gets the last one's words.
//     body.go compares the ids in the answer with the request's, where the worker's have held it before (habit.go): a
//     connection that is out of step gives each client somebody else's answer. Such an answer is discarded, and the
//     request tried again, as if the connection had broken.
//  6. stream.go hands the stream on, whole events at a time (splitter.go). What fails from here on is an error event,
//     and the connection never ends cleanly after it. A worker's own error event goes to the client as it is.
//  7. At its end, once, the route learns, the worker's count goes down, and the [Meter] counts.
//
// [Seen] is the record of all this: route.Record, and how the answer ended. Headers (explain.go), the access log and
// metrics read it. journal.go has the lines and counters of what went wrong on the way.
//
// # What needs what
//
// [Server] makes an [Exchange]; that tries attempts, and each has a stream, which is a body that goes to the client
// piece by piece. The weigher reads an answer and the attempts before it, and is kept by nobody. All of them read the
// request, which knows none of them. The request knows the journal, and not the Server.
//
// # Doors
//
// SageMaker's protocol changes the path at the worker, some header fields and the form of the answer. It is an [Entry]
// with a [Door]; a plain request has none. Its error shape stands here beside Anthropic's, as the front refuses
// requests before any door is opened.
//
// # Memory
//
// An [Exchange] is one allocation with its first attempt, nearly always its only one, that one's response and ticket. A
// further attempt has its own, as a late callback may still look at the first. [Life] is a context in one allocation
// where package context took nine.
//
// # Tracing
//
// The front's tracer sets [Trace]. The exchange passes its fields on to the worker and does nothing else with it.
//
// # What lost
//
// A bufio.Reader around a stream: it would pass on half events, after which no error event can follow. A pointer from
// the Life to its attempt: a number is enough, and so the Life knows nothing of attempts.
package exchange
