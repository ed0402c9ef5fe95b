// Package tracing sends OpenTelemetry spans to a collector over OTLP/HTTP: one a request, from its header to the last
// byte of its answer, with the record of its decision as attributes and an event for each attempt that brought nothing.
//
// A [Tracer] is off until [Tracer.Configure] names a collector. The front hands it each request that it lets in
// ([Tracer.Begin]), and the exchange passes the span on to the worker: a traceparent of the client's is honoured, with
// its sampled flag, and the worker's parent is the router's span. exchange and front know no OpenTelemetry, and a
// request costs one atomic load while tracing is off (TestOffCostsNothing).
//
// # What is in a span
//
// Ids, names, counts and times: what the access log has, without the client's address. Never a prompt, an answer, a
// query, a header field or a key; of a client's own words gate.MaxText bytes (TestARequestIsASpan of daemon). Requests
// that are turned away before their body is read have none: else anybody could make any number of spans.
//
// # What a collector can do to requests
//
// Nothing. Spans that have ended wait for it in a queue of maxWaiting spans and maxBytes; the next ones are dropped and
// counted before an attribute of theirs is written. A collector that is down, slow or answers errors is one warning,
// and one line when it takes spans again (TestACollectorCostsNoRequestAnything, TestBytesThatWaitAreBounded).
//
// # Cost
//
// With sample = 1 a request of 1 KB costs 1.15 to 1.27 times the CPU of one without a span, with sample = .01 it
// costs 1.01 to 1.07 times (databench -run telling, on a busy machine): the span is written as protobuf into the batch
// when its request ends, and of the request nothing is kept. A trace that begins here is decided on by its id alone,
// as the SDK's sampler does. The SDK's own span, a list of attributes, a generated message for each of them, and their
// encoding: 1.6 times.
//
// # Why this library
//
// go.opentelemetry.io/otel is the project's own SDK (Apache-2.0). Of it are the reading of the client's context, the
// sampler, the description of the process, and the client that posts batches: its retries, TLS and standard environment
// variables are what operators know. Its price is the size of the binary: otlptracehttp drags grpc in by the generated
// types of the protocol. logr is what the SDK logs by; see sdkLog for what is kept of that. protowire, of
// google.golang.org/protobuf, is what the generated types are made on.
//
// # What lost
//
// The SDK's spans and its batch processor: see Cost; and the processor drops without a count. otelhttp, a handler
// around net/http: the front is no net/http. A child span for each attempt: two or three times the cost for what an
// event records as well. The candidates of every decision as attributes: they are in the span where server.explain_log
// has them in the access log.
package tracing
