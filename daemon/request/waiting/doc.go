// Package waiting has requests of a pool wait in a queue until a worker has room, each on its own goroutine.
//
// Package queue decides whose turn is next. This package passes the turns to the goroutines, and ends each wait: when
// the client leaves, when another request displaces it, and when its time is over.
//
// # A wait
//
// [Queue.Enter] takes a [Wait]. [Wait.Await] returns when it has the turn. Its owner then chooses a worker, as the
// fleet is now, and says how that ended: [Wait.Served], [Wait.Blocked] or [Wait.Leave]. Until one of these is called
// no other request of the pool gets a turn. So each exit of a request calls Leave, which may be called in any state
// and more than once.
//
// # When room comes
//
// The workers' pool announces it by [Queue.MayHaveCome]. Each 50 ms, while something waits, the queue is woken all
// the same: a believed queue shrinks, a worker in slow start has its turn, and one that refused a request takes
// another, without an event. While nothing waits there is no timer, and MayHaveCome costs one atomic load.
//
// # How long
//
// A request waits for Config.Wait, and for Config.WaitEmpty while no worker is up that has its model. What its lane
// found last says which of the two counts, from the moment when that changed. Both together bound a wait whatever the
// workers do, and so does the request's deadline.
package waiting
