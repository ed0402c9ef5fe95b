// Package handoff has the prompt of a request computed by one worker, a prefiller, and its answer written by another
// one, a decoder. Package pair has the connectors, which bring the KV cache from one to the other, and the bodies of
// both legs. Package exchange chooses the decoder.
//
// # Life of a pairing
//
// A [Pairing] belongs to one request, while a worker is sought that answers it. [Pairing.Splits] decides for each
// worker of the order whether a prefiller computes the prompt. [Pairing.Prefill] makes the first leg and then the body
// of the second, and [Pairing.Ended] is told how the second leg ended. [Pairing.Stop] has the next worker compute the
// prompt itself after a prefill that failed, and [Pairing.Free] has the prefillers free what no decoder has read.
//
// # Life of a leg
//
// The first leg is an [Exchange] of its own, so that it waits in the queue, is retried and learnt from as any request.
// It may outlive its client. Its owner is the Pairing until its client leaves or its time is over, and then the
// goroutine that sends it. It is in one of these states:
//
//   - chosen: no prefiller has it yet. A client that leaves ends it.
//   - sent: a prefiller may have it. It ends by the prefiller's answer, or by drop where the connector allows that.
//   - dropped: nobody waits for it. If the prefiller has kept the KV before it saw that, a decoder frees it.
//
// The connector says when the second leg follows: in turn (pairing.go, sendBefore), at the same time (sendBeside;
// meet.go says where the two workers meet), or not at all, as a sidecar sends the first leg itself (sidecar.go).
//
// # What a prefiller keeps
//
// With some connectors a prefiller keeps the KV until a decoder has read it, and else for minutes. free.go has a
// decoder read what nobody reads for sure: the client left, the decoder refused the request, or it failed and may not
// have read it. A second read does no harm.
package handoff
