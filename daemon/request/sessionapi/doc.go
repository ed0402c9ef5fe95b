// Package sessionapi serves sessions as a resource: SageMaker's runtime API (NEW_SESSION, use, CLOSE, on
// /endpoints/{name}/... and /invocations), and its plain twin, POST, GET and DELETE /sessions.
//
// Package sagemaker has SageMaker's protocol, as plain functions. Package exchange serves the requests, and knows
// nothing of it: a [door] answers it what to send and what to leave out, and translate puts the worker's answers into
// SageMaker's form. [API] reads a call and hands it to openings, closings or plain, each of which has its own file and
// its own type.
//
// # Rules
//
// A session's worker may keep one of its own (vLLM does, with --enable-session). The client then gets the worker's id,
// or one of ours in its place. A worker that keeps none is sent nothing about sessions: the router alone holds them
// (knowsNoSessions finds that out).
//
// Attempts of one opening, which SDKs repeat when an answer is late, open one session (sagemaker.Opens). A close is
// sent to the worker that took the opening in, unless that is down. If it cannot answer, the session stays, and the
// client can close it again.
//
// # What lost
//
// Branches on a call in the exchange. They stood at 19 places of 7 files.
package sessionapi
