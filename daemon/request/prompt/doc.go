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
// # Why canonical text, not the body's bytes
//
// Two clients that send the same chat seldom send the same bytes: one escapes é and /, one sorts keys, one writes a
// text as a list of one part. The worker's chat template sees the same, and so must the hashes. canon.go states the
// form. Two rules shape it. All that identifies a text comes before it and only an end mark after it, so that long
// prompts which differ in their last word share all before; a length in front would undo that. And an answer, appended
// to its prompt, is the beginning of the next turn's text byte for byte: the answer is entered in the index before it
// is ever sent back.
//
// # Which endpoints share
//
// vLLM turns an Anthropic message into a chat and renders it by the same template, so the two have one canonical text.
// A Responses input becomes messages too, but its renderer starts otherwise, with other tokens from the first on: it
// has a domain of its own. With previous_response_id the worker has the conversation: nothing is hashed, and the
// request goes to that worker. Lists to be embedded are one prompt each. A rerank is one chain: a chain per document
// would hash the query a thousand times to learn that all of them go to one worker.
//
// # Rules
//
//   - JSON is scanned by hand, and a fuzz test holds the scanner to encoding/json's verdict on every body.
//   - Multipart reads every form as well as it can, and reports whether all readers would understand it alike
//     (TestFormsAgainstPython).
//   - Output and Failed hold at every byte of an answer, so that another worker can be asked until the first output.
//   - The chain of hashes starts from a secret of the namespace, so that no tenant can make up hashes that match
//     another's.
//
// why.md has the reasons, what the canonical text leaves out, and what lost.
package prompt
