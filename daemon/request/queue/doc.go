// Package queue keeps the requests of a pool that no worker has room for, and decides which one is next. A request
// that waits here can still go where its prefix is when room comes; one that waits in an engine cannot.
//
// # Turns
//
// [Queue.Enter] adds a request, [Queue.Next] selects the next one: it has the turn. The caller then chooses a worker
// for it, by the state of the fleet at that moment, and reports the result: [Queue.Served] or [Queue.Blocked]. One
// request at a time has the turn, so that two never see the same free place. A request that found no room blocks its
// lane: the others of the lane need the same workers, and would look in vain. [Queue.Wake] opens all lanes again,
// when room may have come. If it comes while a request looks for a worker, that request may have looked too early,
// and does not block its lane.
//
// A request that would find room, but shall wait for a better worker, is held ([Queue.Hold]). It blocks no other
// request, as it has no place in its lane during that time. Wake puts a few of them back, those that were held the
// longest first, and [Queue.Return] one whose time is over. A held request counts in the bounds, and is not
// displaced.
//
// # Order
//
// A lane ([Request.Lane]) has the requests that the same workers can serve. The highest class comes first, among the
// lanes that are not blocked. The keys of a class take turns by weight, however many lanes each has. The flows of a key
// in a lane share its turns by deficit round robin.
//
// A turn costs the seconds of prefill at the best worker, and the seconds for which the request takes a place there
// with its part of the KV cache. The expected cost is charged at once, and [Charge.End] corrects it when the worker
// is done. A request that need not wait is charged too, while others do ([Queue.Began]).
//
// A key's next turn in a lane comes when the others of the class have had as much (start-time fair queueing). A new
// key starts level with the first one of its lane, so that no key saves up turns. Its debt is kept, for at most 10
// minutes, until no request has waited for 10 s.
//
// A key that was not served in a lane for Starve goes before all others there, unless it has had more than Starve
// seconds of service beyond the first one of its class: otherwise a key with many requests would get more than its
// share. At most every fourth turn is of this kind, and a key gets one per Starve.
//
// # Bounds
//
// One key may use all of MaxRequests and MaxBytes. If the queue is full, a request displaces the last ones of the key
// that holds the most of the lowest class, and of that key's flow that holds the most. A quarter of the room is kept
// for lower classes, or taken for them from higher ones, unless Starve is 0. A key of the newcomer's class must hold
// more than its own; if it is its own, the two flows are compared. More than MaxFlows names share one flow for each
// key. A flow is dropped with its last request.
//
// # Rules
//
// The package has no clock, no goroutine, no socket and no log. Callers pass the time in, so the lab runs the same
// code. A Queue is safe for concurrent use.
package queue
