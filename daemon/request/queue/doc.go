// Package queue keeps the requests of a pool that no worker has room for, and decides whose turn is next. A request
// that waits here can still go where its prefix is when room comes; one that waits in an engine cannot.
//
// # Turns
//
// [Queue.Enter] takes a request, [Queue.Next] gives one the turn. The caller then chooses a worker for it, as the fleet
// is at that moment, and says how that ended: [Queue.Served] or [Queue.Blocked]. One request at a time has the turn, so
// that two never see the same free place. A request that found no room blocks its lane: the others of the lane need the
// same workers, and would look in vain. [Queue.Wake] opens all lanes again, when room may have come. If it comes while
// a request looks for a worker, that request may have looked too early, and does not block its lane.
//
// A request that would find room, and is to wait for better, is held ([Queue.Hold]): it blocks nobody, as it has no
// place in its lane meanwhile. Wake puts a few of them back, those that were held the longest first, and [Queue.Return]
// one whose time is over. A held request counts in the bounds, and is not displaced.
//
// # Order
//
// A lane ([Request.Lane]) has the requests that the same workers can serve. Of the lanes that are not blocked the
// highest class comes first. In a class the keys take turns by weight, whatever the number of their lanes, and in a
// lane the flows of a key share its turns, by deficit round robin.
//
// A turn costs the seconds of prefill at the best worker, and those of a place there with its part of the KV cache.
// What is expected is charged at once, and [Charge.End] corrects it when the worker has done its work. A request that
// need not wait is charged too, while others do ([Queue.Began]).
//
// A key's next turn in a lane comes when the others of the class have had as much (start-time fair queueing). A key
// begins where the first of its lane is, so that nobody saves turns up. What it owes is kept, 10 minutes at most,
// until nothing has waited for 10 s.
//
// A key that was not served in a lane for Starve has a turn there before all others, unless it has had that many
// seconds more than the first of its class: else who asks for much would get more than its share. Every fourth turn
// may be such, and a key has one in Starve.
//
// # Bounds
//
// Of MaxRequests and MaxBytes one key may have all. If the queue is full, a request displaces the last ones of the
// key that holds the most of the lowest class, and of that key's flow that holds the most. A quarter of the room is
// kept for lower classes, or taken for them from higher ones, unless Starve is 0. A key of the newcomer's class must
// hold more than its own; if it is its own, the two flows are compared. More than MaxFlows names share one flow for
// each key. A flow is forgotten with its last request.
//
// # Rules
//
// The package has no clock, no goroutine, no socket and no log. Callers pass the time in, so the lab runs the same
// code. A Queue is safe for concurrent use.
package queue
