// Package prompt reads what passes through the router: of a request's body the few fields that routing needs and the prompt as
// chained block hashes, of an answer what the client will send back with its next turn.
//
//	r, err := parser.Parse(prompt.Chat, body) // one pass; err: malformed, what stood complete before the fault is kept
//	r.Hash(seed)                              // r.Chains[i].Hashes, one per 128 bytes of canonical text
//	reply.Feed(chunk) ...                     // beside the copy to the client
//	if _, complete := reply.Finish(); complete && reply.Extend(&r.Chains[0]) { index.Touch(worker, r.Chains[0].Hashes) }
//
// # Why not a JSON library
//
// Routing needs a dozen fields of a body that may hold a million tokens. Decoding 256 KB takes encoding/json 1,038 us, gjson
// 207, sonic 145, goccy 141; passing over it eight bytes at a time takes 44 and no memory. The price, a hand-written scanner,
// is paid with a fuzz test that holds it to encoding/json's verdict on every body. It is more lenient in three things that the
// worker's Python accepts too: a byte order mark, NaN and Infinity. It is stricter in one: nesting beyond 512.
//
// # Why canonical text, not the body's bytes
//
// Two clients that send the same chat seldom send the same bytes: one escapes é and /, one sorts keys, one writes a text as a
// list of one part. What reaches the worker's chat template is the same, and so must the hashes be. canon.go states the form.
// Two rules shape it. All that identifies a text stands before it and only an end mark after it, so that long prompts which
// differ in their last word share all before; a length in front would undo that. And an answer, appended to its prompt, gives
// the beginning of the next turn's text byte for byte: the answer is entered in the index before it is ever sent back.
//
// What is left out, and why: reasoning (clients do not return it, templates drop it); ids of tool calls in the assistant's
// message (some clients replace them, and then the answer as heard would never match the answer as returned; a replaced id is
// still seen in the tool's message that follows, where it costs nothing as the client keeps it from then on); sampling fields
// and chat_template_kwargs (they change a prompt's end at most, with the usual templates). Order inside a tool's parameters
// does count, because templates print it. A text that is not valid UTF-8 could imitate a mark; the worker refuses it.
//
// # Why the seed
//
// The chain starts from a secret of the namespace (model, adapter, salt): xxh3 is no cryptographic hash, and a tenant who
// knew the seed could make another's prompt appear to be his. The engine's own SHA-256 chain would cost 100 times as much and
// is never needed, as its hashes stay opaque to the index. A wrong match only sends a request to a worker that must prefill.
package prompt
