// Package tokens finds the token ids of a request's prompt as the worker's engine has them, for strategies that use
// the workers' reports: KV events name blocks by token ids, so that only token ids can be compared with them.
//
//	q.Read(kind, model, body)       // what decides the ids, as digests
//	ids, outcome := source.IDs(ctx, Request{Question: q, ...})
//
// # Where ids come from, in this order
//
//  1. The body has them.
//  2. The cache has them: a text, and all else that decides the ids, came before.
//  3. A worker that serves the model is asked, by the render of the request's own path, else by /tokenize. All requests
//     with one text share the question.
//
// Whatever takes longer than the budget, or fails, brings no ids: the request is routed by its text.
//
// # What decides the ids
//
// Not the canonical text by which prompts are hashed: it leaves out what a template may print (reasoning, ids of calls,
// template arguments). A question goes by the body's raw values: all of its fields but those of which question.go knows
// that no token depends on them. An unknown field makes another text of the same messages, which costs one question and
// is never wrong.
//
// # How the load on a worker is bounded
//
// A worker that fails, or is slow with a short text, is not asked for a while (standings.go). A long text that will be
// late by the pace of those before is not waited for, but asked for all the same: the next request may have it too.
// /tokenize never gets more than a few times what the model can take.
//
// # Why
//
// why.md has the fields and releases, what was measured, and what lost.
package tokens
