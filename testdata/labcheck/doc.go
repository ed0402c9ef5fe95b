// Command labcheck holds the lab's model to the daemon itself. The same chats are sent over HTTP to a daemon with
// simulated workers, in real time, and run by the lab in virtual time. It prints hit rate and TTFT of both, one JSON
// line a strategy, and fails if the hit rates are more than a point apart, or the median TTFTs more than a tenth.
//
//	go run ./testdata/labcheck
//
// It takes three minutes a strategy and wants an idle machine: the daemon's side is measured by the clock.
package main
