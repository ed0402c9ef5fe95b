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
// # Why golang.org/x/sys?
//
// The standard syscall package is frozen, lacks the two socket options and has no recv with flags for the peek loop.
//
// # Why so, and what lost?
//
// why.md has the figures of a connection that waits, the socket options, and what was tried and lost.
package listen
