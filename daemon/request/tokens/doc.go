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
// Whatever takes longer than the budget, or fails, brings no ids, and the request is routed by its text.
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
// A chat's next turn is all of the last one and some more, and what a worker takes for it grows with all of it. So the
// ids of a chat's messages are kept without the beginning of the answer (turn) that the template puts behind them, and
// of the next turn the worker is asked for the messages behind these alone, with one short message in place of those
// before them (chat.go). This is right where the template prints each message by itself, between tokens that the
// tokenizer cuts out of any text first. Nobody declares that, so it is shown, once a context (model, tools, template
// arguments):
//
//   - turn begins with a token written as <...> or [...] that stays one among letters, blanks and its likes;
//   - three chats put together were, id by id, what the worker makes of all of them, and one in 64 is compared later;
//   - each end begins with the ids of the short message, and goes on with the token that turn begins with.
//
// With the recordings' tokenizer and template 2,000 of 2,000 chats of texts made of blanks, marks of messages and bytes
// of other scripts came together rightly. A template that drops thoughts or moves the system's text fails the second
// rule, and its chats are asked for whole. A completion's text has no such place.
//
// # Render and /tokenize
//
// A render takes the body as it is, and gives exactly the request's ids. vLLM has it since 0.15, and since 0.30 only if
// it was started with --enable-scale-out. /tokenize is everywhere, and reads fewer fields than chat does: not
// tool_choice, reasoning_effort, response_format nor documents (0.32). With one of these it is not asked. It has no
// form for /v1/responses, whose renderer begins a prompt otherwise, nor for Anthropic's messages, of which the worker
// makes a chat in its own way: both have ids by a render alone.
//
// Whether /tokenize is right all the same is shown by answers: those to the first two prompts of a class (model, kind,
// and the values of the fields that /tokenize does not know), and then to one in 64, are made to name their ids. A
// class with such fields is asked for from its second equal answer on, and none after a difference (trust.go).
//
// # What answers teach
//
// Where ids were late, and where they are to be compared, the body goes to the worker with return_token_ids: true, and
// the answer goes through a [Stripper]. Without the field vLLM sends the same lists as null (recorded from 0.11, 0.19
// and 0.32, plain and streamed), and from 0.19 on no chunk for tokens that a parser keeps. So a client sees no
// difference, byte for byte. Not every answer is made to teach: ids are some 7 bytes each, and the worker writes them
// before its first token. A body with echo or logprobs never is: there the field changes more than its lists.
//
// The generated ids are not used. A model writes ids that its tokenizer would not make of the same text (of 7 % of the
// tokens of random answers), and the next turn brings the text. Only its text decides what the next turn's ids are.
//
// # What a worker is spared
//
// A worker that fails, or is slow with a short text, rests (standings.go). A long text that will be late by the pace of
// those before is not waited for, but asked for all the same: the next request may have it too. /tokenize never gets
// more than a few times what the model can take.
//
// # What lost
//
// A tokenizer in this process. It needs each model's files here, a renderer of its template, and both as the worker has
// them. Of those without cgo sugarme/tokenizer 0.3.0 (Apache-2.0) loads tokenizer.json, and drops special tokens: 880
// of 1,000 texts right and none of the 120 with a message's marks in them, at a sixth of the speed of the library that
// workers use: a budget of 50 ms is 3,000 tokens. gomlx/go-huggingface 0.3.1 has sentencepiece alone.
//
// Sending the ids on in place of a completion's text. vLLM reads the text for echo, logprobs and the offsets in them,
// and a list of 64,000 ids is half as long again as its text; whether the answer is the same in all else was not shown
// on a real worker, so it is not done.
package tokens
