// Package exchange serves one request from its header and body to the last byte of its answer. It knows no HTTP
// library: an [message.Inbound] comes in, an [message.Outbound] goes out, and between them is a request at a worker
// (package upstream).
//
// # Life of a request
//
//  1. The front calls [message.Classify], which returns who answers at the path. An [epoch.Epoch] comes with the
//     request: configuration, pools and settings at its arrival. The request is served under no other.
//  2. Package admission: permit.go reads the body once (package prompt): model, stream, session key, prompt.
//     Malformed JSON goes on to a worker, which answers 400. A key with a list of models may not send what a worker
//     could read otherwise than this router does (TestReadingForbids). Where a request cannot be routed or permitted
//     without more of a long body, readon.go keeps the body in package overflow and reads on, until the model has
//     come or to the end. A body that was kept whole is repeated as any other.
//  3. Its lethal.go refuses a request with which two workers have ended. claim.go reads which session the request
//     claims. For a strategy that goes by what the workers hold, ids.go gets the prompt's token ids (package tokens),
//     within a budget of time. choose.go asks the pool's route for a choice. While a first health check is still to
//     come, choose.go waits and asks again: a choice changes nothing.
//  4. exchange.go tries the workers in the order of the choice, each by an [attempt.Attempt]: it sends the request, and
//     decides whether the client gets the answer. Up to the first output nothing has reached the client, and a worker
//     that refuses, closes or fails costs only time. The [attempt.History] says what is tried next. If all give up, the
//     client gets the last one's words. Package handoff has the prompt computed by another worker, where the pool has
//     prefillers and decoders.
//  5. The attempt hands the answer on and ends with it: the route learns, the worker's count goes down, and the
//     [journal.Meter] counts.
//
// [message.Seen] is the record of all this: record.Record, and how the answer ended. Headers (explain.go), the access
// log and metrics read it. Package journal has the lines and counters of what went wrong on the way.
//
// # What needs what
//
// [Server] makes an [Exchange], and that makes the attempts. Both read the admission.Request, which knows neither, and
// an attempt knows nothing of the exchange.
//
// # Tracing
//
// The front's tracer sets [message.Trace]. The exchange passes its fields on to the worker and does nothing else with
// it.
//
// # Why
//
// why.md has why SageMaker's protocol is an [message.Entry] with a [Protocol], how many allocations a request takes,
// and what lost.
package exchange
