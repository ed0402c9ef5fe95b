// Package message has what a client and the router say to each other: the request ([Inbound]), the answer ([Outbound]),
// the errors of the router's own ([Fault]), and the header fields that pass between client, router and worker. It knows
// no HTTP library.
//
// [Classify] returns the [Endpoint] of a path. An [Entry] is what a protocol around the request adds to it. [Seen]
// records the outcome of the request: headers, the access log and metrics read it. [Life] is the context of one
// request, [Comments] keep its connection in use while the client waits, and [Trace] is how a tracer follows it.
package message
