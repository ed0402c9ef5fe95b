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
// What lost: a thread in epoll_wait, which keeps a processor from the others until the scheduler notices that it
// blocks, and was slower at the p99 under load; a read in the background, as in net/http, which is a goroutine a
// request and takes the first byte of a pipelined request out of fasthttp's hands; adding and removing at each
// request, two system calls; a peek at intervals, which is late. The last is the way on other systems than Linux.
// There a TLS client's last record hides that it left until somebody reads.
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
// # Why are read deadlines set late?
//
// fasthttp asks for two a request, and setting one takes longer than all of Watch. One is set when a read begins, and
// only if the one in force is not that or up to half a second later (see lazy).
//
// # What does a connection cost that waits?
//
// fasthttp holds a reader of 16 KB, a writer, a context and a goroutine with a stack of 8 KB for each connection, even
// while its client sends nothing. So a second or two after the last answer its read ends as if the client had left, and
// Config.Parked gets the connection, which needs only a fresh goroutine for its wait. It is leased anew with the next
// request. No timer is set for it. Each read that waits for a request notes the number of the latest look at all
// connections, and one look a second finds the reads that have waited over a whole one.
//
// fasthttp may hold the beginning of another request by then, so a lease looks at its deadlines: one is set before the
// wait, and another once a byte of the request is there, read ahead or not (TestNotParked, TestParkHammer). TLS stays
// as it is: most of what it holds is its own.
//
// The parked connection waits in [Conn.Await]: half a minute in its goroutine, then in none. On Linux the watcher's
// epoll asks for data as well from then on, and the look finds those that have waited too long. Such a connection holds
// 1.8 KB of heap, one with a goroutine 4.0 KB with the stack (live memory of 6,000, after a collection). A request on
// such a connection costs 411 us of CPU for 331 (peersbench -cost, 333 requests/s: the watcher's thread sleeps in the
// kernel and must get a processor first). So only clients that may never send again wait this way.
//
// What lost: ReduceMemoryUsage of fasthttp, which keeps the reader where bodies are streamed.
//
// # What becomes of a slow reader?
//
// A write has Config.WriteTimeout to get on by at least a byte. Time is given again for as long as bytes go out,
// however large the write: one deadline a response, as fasthttp's WriteTimeout is, would cut long streams. A deadline
// at each write makes a small write half as dear again, so one is set a quarter of the timeout at most.
//
// TCP_NOTSENT_LOWAT makes "gets on" mean something: without it the kernel queues megabytes and wakes the writer only
// after a third of them have left, so that a slow but steady reader looks like a stalled one. It also bounds what a
// stuck stream holds in the kernels of both ends, to a fourteenth.
//
// TCP_USER_TIMEOUT is for the client that vanished without a word: a stream of small chunks would go into the
// kernel's queue for the 15 minutes of net.ipv4.tcp_retries2 before a write fails. It is three times WriteTimeout, so
// that a write that waits is most often given up here before, and answered with a reset, which the kernel would not
// send.
//
// # What becomes of a process without descriptors?
//
// [Patient] outlasts every failed accept, and [Room] keeps so many descriptors back from clients that the operator's
// pages, health checks and the workers' connections always have theirs (TestDescriptorsUsedUp in daemon/cli).
// The alternative, to free one only when accept fails, leaves none for the next health check, and a worker is taken
// for down that is well.
//
// # What becomes of half a head?
//
// The client gets an answer, and its connection is closed at once: when its time is over, or as soon as the head has
// ended in bare line feeds, for which fasthttp would wait (see head).
//
// # Why golang.org/x/sys?
//
// The standard syscall package is frozen, lacks the two socket options and has no recv with flags for the peek loop.
package listen
