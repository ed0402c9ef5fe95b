// Package decisions keeps the last requests of this process, so that each can be explained afterwards by its id.
//
// A [Ring] takes a decision when it is made ([Ring.Decided]), so that a stream that runs for minutes is seen while it
// runs, and its end when it has ended ([Ring.Ended]). Its memory is bounded in bytes, and the oldest that have ended
// make room. What is kept is plain values: ids, counts and times, never a prompt, an answer, a header field or a key.
// It keeps at most gate.MaxText bytes of a client's own words (id, model, path), as copies: a slice of a header field
// would keep the whole header alive, and the secret in it.
//
// # Who looks
//
// A viewer asks again and again for the changes since its last question ([Ring.Since]). So a request does no work for
// viewers, and a slow viewer delays no request.
//
// why.md has the reasons and the details, and what lost.
package decisions
