// Package sagemaker is the SageMaker runtime API on the wire: paths, fields, ids, errors, event streams, and attempts
// of one call. It is plain functions over strings and bytes: other packages serve HTTP, keep sessions (package session)
// and choose the worker. Source of the formats: the public service model of sagemaker-runtime (2017-05-13, as of
// 2026-11), and what the SDKs for Python, Go, JavaScript and Java send and accept. Session fields are taken on the
// workers' own path /invocations too.
//
// # What the exchange does
//
//  1. [Path], then [Read] with [RequestType] of the body. An [Error] is the answer: Status, Headers, Body.
//  2. To the worker: every field but those that [Call.Strip] names, on its own path. On the stream path Accept is
//     Call.Accept. A worker that holds the session gets [HeaderSession] with the id that it gave; no other worker gets
//     that field, since vLLM without sessions answers 400 to it. A body that has its Op in it (Call.InBody) goes to
//     workers that hold sessions; elsewhere the router answers such a body itself, as there is nothing to infer.
//  3. Open runs inside [Opens.Do], keyed by the caller's name and Call.InvocationID: pick, send, read the answer
//     whole. 2xx: [Opened] returns what the worker minted, else the caller mints one; then session.Bindings.Open,
//     whose end goes to the client as HeaderNewSession: [FormatNew]. A result that is not OK is not kept, so the
//     SDK's next attempt tries again.
//  4. Use: an id that session.Bindings.Find does not find is a [ValidationError] that names the reason. Close: the
//     same, sent on to the worker that opened the session, and HeaderClosedSession with the client's id.
//  5. The worker's answer, not 2xx: [Translate]. A fault of our own: [Refusal] of its status. Retries of workers come
//     first: on ServiceUnavailable SDKs repeat at once, in 0.1 s for boto3.
//  6. 2xx: its fields but those that [Call.StripAnswer] names. On the stream path [NewStream] around the body,
//     Content-Type [StreamType], the worker's own type as HeaderContentType, no length.
//
// # Libraries
//
// github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream encodes events: AWS keeps it in step with its clients. It
// brings smithy-go's logging interface along and nothing else.
//
// why.md has the reasons and the details, and what lost.
package sagemaker
