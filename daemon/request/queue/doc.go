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
// A lane ([Request.Lane]) has the requests that the same workers can serve. In a lane the highest class comes first.
// The keys of a class take turns, and in a key's turn its flows: a client that names many agents has many flows, and
// gets no more for that. Both take turns by deficit round robin (Shreedhar and Varghese, 1995). Its unit is not
// requests or tokens, as a prompt that is in a cache costs nothing, but seconds of prefill at the best worker
// ([Request.Cost]). The quantum is the mean cost of what waits, so a turn costs the same however many flows there are.
//
// A class with a flow that has not been served for Starve gets a turn before higher classes, but only every fourth of
// the queue: else a thousand flows of a low class would take all. Within the class its keys take turns as always.
//
// Of several lanes whose first request has the same class, the one comes first that has had the least seconds for the
// weight of its keys. A lane that had nothing to serve for a while does not catch up.
//
// # Bounds
//
// Of MaxRequests and MaxBytes one key may have all. If the queue is full, a request displaces the last ones of the key
// that holds the most of the lowest class, if that is a lower class than its own, or the same and that key holds more
// than its own: of that key's flow that holds the most. If that is its own key, the two flows are compared. More than
// MaxFlows names share one flow for each key. A flow is forgotten with its last request.
//
// # Rules
//
// The package has no clock, no goroutine, no socket and no log. Callers pass the time in, so the lab runs the same
// code. A Queue is safe for concurrent use.
package queue
