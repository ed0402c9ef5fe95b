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
// why.md has the reasons and the details, and what lost.
package prefixaware
