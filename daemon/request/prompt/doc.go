// Package prompt reads what passes through the router: of a request's body the few fields that routing needs and the
// prompt as chained block hashes, of an answer what the client will send back with its next turn, the worker's own
// count of tokens, and whether it is a failure.
//
//	r, err := parser.Parse(prompt.KindOf(method, path), body) // one pass; err: malformed or cut, the rest is kept
//	r.Hash(seed)                                              // r.Chains[i].Hashes, one per 128 bytes of text
//	reply.Reset(r.Kind, events, 0)
//	reply.Feed(chunk) // beside the copy to the client; while !Output() hold it back, if Failed() ask another worker
//	_, complete := reply.Finish()
//	if complete && reply.ExtendChoice(&r.Chains[0], 0) { touch the index; record reply.Usage() }
//
// # Files, lowest first
//
// JSON: unescape, lex (strings and numbers), scan (objects and arrays). Hashes: chain, canon (the canonical text),
// parts and calls (what contents and tools are in it). A request: kind (which path has which body), fields (the table
// of names), conversation with its dialects items (Responses) and blocks (Anthropic's Messages), request, hash. A
// form: parthead, multipart. An answer: sse (events), usage, state (how far it has come), answers (what is gathered),
// transcript (all that is read of it), a reader for each shape (choices, outputs, contents), quick (the short way),
// reply (Reset, Feed, Finish), verdict (what a Reply reports).
//
// # Why not a JSON library
//
// Routing needs a dozen fields of a body that may hold a million tokens. encoding/json takes twenty times as long as
// passing over it eight bytes at a time, the fastest library three times, and both take memory. The price, a scanner
// written by hand, is paid with a fuzz test that holds it to encoding/json's verdict on every body. It is more
// lenient in three things that the worker's Python accepts too: a byte order mark, NaN and Infinity. It is stricter
// in one: nesting beyond 512.
//
// # Why a form may be read and still not be ok
//
// No standard says what a form with two names in one part means, and each reader decides otherwise. Multipart reads
// such a form as well as it can, for routing. It also reports that the form is not ok, for callers that may use some
// models only. ok is a list of what clients do write. A list of known tricks lost, as each reader has its own.
// TestFormsAgainstPython compares forms made of such tricks with vLLM's own reader. JSON leaves no such freedom, except
// for a field that comes twice: AmbiguousModel.
//
// # Why canonical text, not the body's bytes
//
// Two clients that send the same chat seldom send the same bytes: one escapes é and /, one sorts keys, one writes a
// text as a list of one part. The worker's chat template sees the same, and so must the hashes. canon.go states the
// form. Two rules shape it. All that identifies a text stands before it and only an end mark after it, so that long
// prompts which differ in their last word share all before; a length in front would undo that. And an answer,
// appended to its prompt, is the beginning of the next turn's text byte for byte: the answer is entered in the index
// before it is ever sent back.
//
// Left out are: reasoning (clients do not return it, templates drop it); ids of tool calls in the assistant's message
// (some clients replace them, and the answer as read would never match the answer as returned; a replaced id is still
// seen in the tool's message that follows); sampling fields and chat_template_kwargs (they change a prompt's end at
// most, with the usual templates). Order inside a tool's parameters does count, because templates print it. A text
// that is not valid UTF-8 could imitate a mark; the worker refuses it.
//
// # Which endpoints share
//
// vLLM turns an Anthropic message into a chat and renders it by the same template, so the two have one canonical
// text. A Responses input becomes messages too, but its renderer starts otherwise, with other tokens from the first
// on: it has a domain of its own. With previous_response_id the conversation lies in the worker, nothing is hashed,
// and that worker is the one to go to. Lists to be embedded are one prompt each. A rerank is one chain: a chain per
// document would hash the query a thousand times to learn that all of them go to one worker.
//
// # Why an answer is read event by event
//
// A draining or paused vLLM answers 200 and then nothing: finish_reason abort, a bare [DONE], stop_reason null. As long
// as a client has seen no output, another worker can still get the request, so Output and Failed hold at every byte.
// Most of an event is the same in all events of a stream, and the short way (quick.go) takes a tenth of the time of
// reading it in full. A parser that only looks for "content" and "error" was no way: text can hold both. The state of
// an answer is three enums with a table of what moves them (state.go). Nine flags lost: nobody knew which of them could
// be true together.
//
// # Why the seed
//
// The chain starts from a secret of the namespace (model, adapter, salt): xxh3 is no cryptographic hash, and a tenant
// who knew the seed could make another's prompt appear to be his. The engine's own SHA-256 chain would cost 100 times
// as much and is never needed, as its hashes stay opaque to the index. A wrong match only sends a request to a worker
// that must prefill.
package prompt
