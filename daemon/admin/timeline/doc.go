// Package timeline keeps the last hour of each worker and pool in memory, and the events in it, so that the page can
// draw them without a Prometheus.
//
// [Timeline.Look] gets the state of the workers once a second. It adds that to the span of half a minute in which the
// look falls: what is shown are means of some 30 looks. What changed between two looks becomes a [Mark], as do
// reloads and the start of the process. operator.Recent counts requests in spans of the same length.
//
// # Bounds
//
// A worker takes 3.4 KB and a pool as much. There are at most maxTracks of them and maxMarks marks: where more workers
// come within an hour, the last ones have no curve, and pools still count them. A worker that left is kept until its
// last span is an hour old, as its part of the hour is in the curves of its pool.
//
// Nothing here reads a clock or another package.
package timeline
