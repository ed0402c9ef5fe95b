// Package limit counts what each API key takes: its requests in flight, its requests a minute and its tokens a minute.
// It decides whether one more request is let in. It has no socket, no clock, no goroutine and no log: the caller passes
// the time in, and tests run hours of it in milliseconds.
//
// # A request's way
//
//	Enter    before anything is spent on the request: it takes a place in flight and one of the requests a minute
//	Reserve  once its worker is chosen: it takes the tokens that the request is expected to need
//	Sent     a worker has the request: from here on it counts
//	Grow     tokens of the answer have arrived, perhaps more than expected
//	Use      what the engine has counted, or what was sent of an answer that broke off; Left if nothing was sent
//	Learn    the key's next requests are expected to be like this one
//	End      the place is free again, and the tokens are corrected to the real use
//
// A [Spending] holds this for one request. Its End may be called more than once, and at any time, so that no panic and
// no abort keeps a place. A request that no worker got gives everything back.
//
// # The rule
//
// A request is let in while two things hold of its key (type meter):
//
//   - What it took in the last 60 s is below its limit. The window slides. If the windows were fixed, a key could use
//     twice its limit around the end of one.
//   - What it has taken beyond the rate of its limit is at most .15 of the limit. This is GCRA (ITU-T I.371), as a
//     leaky bucket, and spreads the requests over the minute. What is beyond the limit stays a debt until the rate has
//     paid it.
//
// Both rules are exact for requests: if the limit is 20 a minute, there are never 21 in 60 s. The number of tokens of
// an answer is not known in advance. So a request is let in below .98 of the limit and pays afterwards: a long prompt
// does not starve beside short ones, and no key is shut out for longer than the limit takes to pay its debt. An answer
// that outgrows what was expected of it takes more as it grows. A request whose counted prompt exceeds the tokens of a
// minute is never let in.
//
// The expected use of a request is learnt from the key's own requests (type habits). In addition, each running answer
// is a risk: it may get longer, but never longer than the client allows. The .15 bounds risks and debts together.
//
// why.md has the reasons and the details, and what lost.
package limit
