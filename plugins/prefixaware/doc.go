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
// TTFT, mean and P90, over that of the rule as it was before (an open gate, .5 for .75, the own wait tilted whole), in
// columns of `warmpath lab` on training seeds 1 to 3; L and syn seed 1, O seeds 1 and 2:
//
//	             B          C          D          E          F          L          O          S
//	chosen       1.00/1.00  1.00/.99   .96/1.00   1.00/1.00  .98/1.00   .98/.99    .99/1.00   .99/1.00
//	K times 1.5  .99/.99    .98/.99    .96/1.01   1.04/1.00  .99/1.00   1.00/1.00  .99/.99    1.00/1.00
//	K times 2.5  1.00/1.00  .97/.99    1.00/1.01  1.15/1.00  .98/1.00   1.02/1.00  1.00/1.01  .98/.99
//	K times 4    1.01/1.01  .97/.99    .97/1.00   1.22/1.02  .98/1.00   1.03/1.00  1.00/.99   .99/.99
//
// Chosen: 1.01/1.02 in T, .98/.97 in syn. It was run without the part of the gate that opens by the mean count in
// flight, which is there for floods of short requests (TestKnownFailuresOfPeers). Of one seed alone and so no more
// than hints: no tilt at all (C .98, D .95, but P90 1.03 in O), a reach of 1.2 (as chosen, P90 1.01 in O), half of the
// eviction's weight (nothing gained in O and D).
package prefixaware
