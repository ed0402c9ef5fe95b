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
