// Package prefixaware is the default strategy: a request goes where most of its prompt is believed cached, unless that
// costs more than it saves. The rule and its reasons are in package score.
//
// # Options
//
// Each term of the score is in seconds and measured, so there is no weight to turn. The two options are those of
// SageMaker's own PREFIX_AWARE routing, for who moves from there; both are off by default, since the score prices what
// they cut off:
//
//	prefix_length          1024 to 65536: only so many bytes at the beginning of a prompt count as cached,
//	                       in blocks of 128
//	concurrency_threshold  1 to 1024: a worker with so many requests in flight gets no more while another has fewer
//
// # Tried and lost
//
// tried.md has the variants of the rule that were simulated, each as a ratio of the time to first token. In short:
//
//   - Other sizes of the price (K), of the tilt and of its gate win in one situation what they lose in another.
//   - A price with the worker's own speed, load, eviction or wait in it multiplies the noise of what was learnt. With
//     what is known of the match alone in it, K is doubled: the rule then loses to no other, neither with long prompts
//     among short ones nor in a surge.
//   - To give up the hits of some workers in a surge, in order to keep those of the others, gained nothing so far.
package prefixaware
