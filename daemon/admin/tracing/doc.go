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
// query, a header field or a key; of a client's own words gate.MaxText bytes (TestARequestIsASpan of daemon).
// Requests that are refused before their body is read have no span: otherwise anybody could create any number of
// spans.
//
// # Why this library
//
// go.opentelemetry.io/otel is the project's own SDK (Apache-2.0). It provides the reading of the client's context, the
// sampler, the description of the process, the span, the processor that makes batches, and the exporter that posts
// them: its retries, TLS and standard environment variables are what operators know. The [queue] counts what goes into
// the processor and what its exporter has sent, as the processor drops without a count. The SDK logs through logr;
// sdkLog says which of these lines are kept.
//
// why.md has the reasons and the details, and what lost.
package tracing
