// Package account has one account for each request: what the request holds that others want too, and for how long.
//
// A request holds its key's place and tokens (package limit), the memory of its body, a place in a queue, a place at a
// worker, a prefill at another worker, an adapter. A client may leave at any time, but an engine that computes a prompt
// goes on. So the account does not end with the client. It has works: the request itself is the first, and each prefill
// that runs on its own is another. Whatever is charged to the key, and the body, is returned when the last work ends.
//
//	Open     begins the account, with the client's request as its first work, which Account.End ends
//	Begin    adds a work that may outlive the client
//	Work.End ends a work; the last one returns the key's place and corrects its tokens
//	Take     records in a Hold that the request holds something; Hold.Release returns it
//	Keep     leaves the memory of the body to the account until no work reads it
//
// A [Hold] and a [Work] return their resource once, however often they are ended, so each exit of a request may end
// them. [Books] has the sums over all requests. They are zero when nothing is under way, and an account that ends
// while something is still held counts as a leak: its sums are corrected, and tests and the soak fail
// (warmpath_account_leaks_total).
//
// A [Shared] is a store that all clients share, divided so that one of them leaves room for the next.
//
// The owners of these things (the pool of workers, the queue, the spool) decide who may have them. The account records
// who has them, and ends with the work. The package has no clock, no socket and no goroutine. It is safe for concurrent
// use.
package account
