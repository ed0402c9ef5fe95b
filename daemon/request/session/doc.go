// Package session records which session lives on which worker, counts the sessions of each worker, and makes their
// ids.
//
// # Three kinds
//
// An Opened session was asked for (NEW_SESSION of SageMaker's API, POST /sessions). Its end is fixed when it is
// opened, and an id that is unknown, expired, closed or another tenant's is the caller's mistake. A Key is what a
// client calls its conversation, or a cookie of ours: an unknown one opens, and it lasts from its last use. A
// Response is the id of a stored response, bound when the answer names it.
//
// # What the exchange does
//
//	open:   pick a worker, send, then Open(name, Binding{Worker, Minted, WorkerSession, Expires}, now). Send the client
//	        the Expires that Open returns. Only a 2xx answer opens. Minted: the answer named a session, and the id is the
//	        worker's, unless the router gives out its own and keeps the worker's as WorkerSession.
//	use:    Find(name, now). Found: the binding's worker, under every strategy. A Minted one gets Upstream(id) in its
//	        session header, others no session header at all. Silent: 503 for Opened and Response, for a Key the choice
//	        that every router makes alike. Anything else: 400 for Opened, a free choice for the rest.
//	bind:   a free choice for a Key whose decision has the bind flag: Bind, or Keep after Silent. Go to the worker that
//	        it returns, since a second request may have been first.
//	close:  Find. The worker of a session that is Minted or Heard gets the close too. Then Close, which comes first for
//	        a worker that is down. One close of several at once returns true.
//	death:  the bound worker is down. Opened and Minted: its state is gone: Lose, 400. Anything else is a matter of
//	        cache only, if the pool's policy allows it: pick, then Rebind(name, from, to, now), and go to the worker
//	        that it returns; "" means that the session ended meanwhile. A worker that drains is not dead.
//
// # Rules
//
//   - Close and Lose delete nothing: they leave a mark until the session's time would have been over.
//   - Keys are SHA-256 of the tenant and the id. Neither Redis nor a page shows an id. Unknown names write nothing.
//   - The end of an opened session is a date that holds, cut to whole seconds. The store counts it down by a clock that
//     cannot be set (TestAClockThatIsSet).
//
// why.md has the reasons, and what lost.
package session
