// Package journal logs and counts what becomes of requests. [Journal] has a line and a counter for each way in which a
// request is refused, tried again or given up; [Meter] is what counts, [Keeper] what keeps decisions for later readers.
package journal
