// Package sessionapi serves sessions as a resource: SageMaker's runtime API (NEW_SESSION, use, CLOSE, on
// /endpoints/{name}/... and /invocations), and its plain twin, POST, GET and DELETE /sessions.
//
// Package sagemaker says what SageMaker's protocol is, as plain functions. Package exchange serves the requests, and
// knows of none of it: a [door] tells it what to send and what to leave out, and this package puts its answers into
// SageMaker's form.
//
// A session's worker may keep one of its own (vLLM does, with --enable-session). The client then gets the worker's
// id, or one of ours that stands for it. A worker that keeps none never hears of the session: the router holds it
// alone.
//
// Attempts of one opening, which SDKs repeat when an answer is late, open one session (sagemaker.Opens). A close
// reaches the worker that took the opening in; one that was told of to the client stays.
//
// What lost: branches on a call in the exchange. They stood at 19 places of 7 files.
package sessionapi
