// Package tokens finds the token ids of a request's prompt as the worker's engine has them, for strategies that go by
// what the workers hold: KV events name tokens, and a worker's blocks can be compared with nothing else.
//
//	q.Read(kind, model, body)       // what decides the ids, as digests
//	ids, outcome := source.IDs(ctx, Request{Question: q, ...})
//
// # Where ids come from, in this order
//
//  1. The body names them.
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
// # The end of a chat alone
//
// A chat's next turn is all of the last one and some more. So the ids of a chat's messages are kept without the
// beginning of the answer (turn) that the template puts behind them, and of the next turn the worker is asked for the
// messages behind these alone, with one short message in place of those before them (chat.go). This is right where the
// template prints each message by itself, between tokens that the tokenizer cuts out of any text first. No worker
// declares that, so it is verified once for each context (model, tools, template arguments):
//
//   - turn begins with a token written as <...> or [...] that stays one among letters, blanks and its likes;
//   - three chats put together were, id by id, what the worker makes of all of them, and one in 64 is compared later;
//   - each end begins with the ids of the short message, and goes on with the token that turn begins with.
//
// # Render and /tokenize
//
// A render takes the body as it is, and gives exactly the request's ids. /tokenize is everywhere, but reads fewer
// fields than chat does, so it is asked only where none of these is set, and answers show whether it is right
// (trust.go).
//
// # What answers teach
//
// Where ids were late, and where they are to be compared, the body goes to the worker with return_token_ids: true, and
// the answer goes through a [Stripper]. Without the field vLLM sends the same lists as null (recorded from 0.11, 0.19
// and 0.32, plain and streamed), and from 0.19 on no chunk for tokens that a parser keeps. So a client sees no
// difference. Few answers are made to teach: ids are some 7 bytes each. A body with echo or logprobs never is: there
// the field changes more than its lists.
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
