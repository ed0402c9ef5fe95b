// Package listen is the clients' side of the wire: a net.Listener whose connections know when their client has left,
// give a slow reader up in time, and speak TLS with a certificate that may change under them. It knows no HTTP.
// fasthttp gets the Listener and finds a Conn again behind ctx.Conn (see From).
//
// # Why is a client watched?
//
// While a worker computes the prompt nothing is read from the client and nothing written to it, and fasthttp looks at
// the connection only when it does either. A client that gave up would be noticed with the first token, up to minutes
// later. The GPU works for nobody until then.
//
// # How is it noticed?
//
// On Linux one epoll descriptor a Listener holds every connection, edge-triggered, for EPOLLRDHUP alone (EPOLLHUP and
// EPOLLERR always come along). Arriving data wakes nobody, so a busy connection costs nothing. Watch and Unwatch are
// a lock and no system call. The descriptor itself waits in Go's own poller: no blocked thread, and no pipe to end
// it.
//
// A half-close counts as leaving, as it does for vLLM: by TCP alone it cannot be told from a close.
//
// # Why two generations?
//
// The kernel hands out an event before it is acted on. In between (1) its connection may be closed, (2) another one
// accepted under the same descriptor number: so an event names a slot and the slot's generation, never a descriptor
// or a pointer. And (1) the request may end, (2) the next one begin on the same connection: so Watch and Unwatch have
// a generation as well.
//
// # What does a connection cost that waits?
//
// fasthttp holds a reader of 16 KB, a writer, a context and a goroutine with a stack of 8 KB for each connection, even
// while its client sends nothing. So a second or two after the last answer its read ends as if the client had left, and
// Config.Parked gets the connection, which needs only a fresh goroutine for its wait. It is leased anew with the next
// request. No timer is set for it. Each read that waits for a request notes the number of the latest look at all
// connections, and one look a second finds the reads that have waited over a whole one. The parked connection waits in
// [Conn.Await]: half a minute in its goroutine, then, on Linux, in the watcher's epoll alone.
//
// # What becomes of a slow reader?
//
// A write has Config.WriteTimeout to get on by at least a byte. Time is given again for as long as bytes go out,
// however large the write: one deadline a response, as fasthttp's WriteTimeout is, would cut long streams. A deadline
// at each write makes a small write half as dear again, so one is set a quarter of the timeout at most.
//
// # What becomes of a process without descriptors?
//
// [Patient] outlasts every failed accept, and [Room] keeps so many descriptors back from clients that the operator's
// pages, health checks and the workers' connections always have theirs (TestDescriptorsUsedUp in daemon/cli).
//
// # What becomes of half a head?
//
// The client gets an answer, and its connection is closed at once: when its time is over, or as soon as the head has
// ended in bare line feeds, for which fasthttp would wait (see head).
//
// # Why golang.org/x/sys?
//
// The standard syscall package is frozen, lacks the two socket options and has no recv with flags for the peek loop.
//
// # Why so, and what lost?
//
// why.md has the figures of a connection that waits, the socket options, and what was tried and lost.
package listen
