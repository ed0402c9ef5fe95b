// Command labcheck holds the lab's model to the daemon itself. The same chats are sent over HTTP to a daemon with
// simulated workers, in real time, and run by the lab in virtual time. It prints hit rate and TTFT of both, one JSON
// line a strategy, and fails if the hit rates are more than a point apart, or the median TTFTs more than a tenth.
// Several loads are sent, each to a daemon of its own: which of two turns comes first is chance in real time, and of a
// single load of 120 requests the hit rates were 1.4 points apart, in either direction.
//
//	go run ./testdata/labcheck
//
// It takes three minutes a strategy and wants an idle machine: the daemon's side is measured by the clock.
package main
