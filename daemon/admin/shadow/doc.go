// Package shadow lets further strategies decide what a pool's own has decided, and compares. None of their choices is
// sent anywhere.
//
// The request's goroutine copies what the strategy decided by (route.Snapshot) into a bounded queue, and one goroutine
// a pool runs the shadows on it, each on the same copy. So a shadow costs the live path a copy of the rows, and what
// comes faster than the shadows take it is dropped and counted: a pool at 1,000 requests/s leaves 1 ms for a decision,
// of which a strategy needs a few microseconds. Under load it wakes for many requests at once (Pool.Run).
//
// # What does a comparison show?
//
// Agreement is the same first worker. A shadow that declines or fails is counted so, and not as one that disagrees. The
// tokens that the chosen workers were believed to hold show what the shadow would gain or lose by reuse, before any
// request is risked; the time and fuel show what it costs. The comparison cannot show how the fleet would have gone on:
// the shadow's choices leave no load behind, and the next request finds the fleet as the live strategy left it. The lab
// can.
//
// A shadow sees the rows that the live strategy saw. One that goes by what workers report (kvaware) sees that too: the
// pool then finds the ids of every prompt, and looks up its reports beside the request, for the shadow alone.
package shadow
