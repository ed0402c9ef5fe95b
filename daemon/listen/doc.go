// Package listen is the clients' side of the wire: a net.Listener whose connections know when their client has left, give a
// slow reader up in time, and speak TLS with a certificate that may change under them. It knows no HTTP; fasthttp is handed
// the Listener and finds a Conn again behind ctx.Conn (see From).
//
// # Why does somebody have to watch at all?
//
// While a worker computes the prompt nothing is read from the client and nothing written to it, and fasthttp looks at the
// connection only when it does either. A client that gave up would be noticed with the first token, up to minutes later, and
// the GPU works for nobody until then.
//
// # How is it noticed?
//
// On Linux one epoll descriptor a Listener holds every connection, edge-triggered, for EPOLLRDHUP alone (EPOLLHUP and
// EPOLLERR always come along): arriving data wakes nobody, so a busy connection costs nothing, and Watch and Unwatch are a
// lock (80 ns both) and no system call. The descriptor itself waits in Go's own poller: no blocked thread and no pipe to end
// it. Noticed after 15 us, p99 0.15 ms, when idle; with 32 connections flat out on two shared cores 0.2 ms, p99 5-10 ms.
//
// What lost: a thread in epoll_wait, which is told sooner under load in the middle (16 us) but not at the p99 (10-18 ms), and
// keeps a processor from the others until the scheduler notices that it blocks; a read in the background, as net/http does
// it, which is a goroutine a request and takes the first byte of a pipelined request out of fasthttp's hands; adding and
// removing at each request, two system calls; a peek at intervals, a system call a connection an interval, and late. The last
// is the way for other systems than Linux; there a TLS client's last record hides that it left until somebody reads.
//
// A half-close counts as leaving, as it does for vLLM: by TCP alone it cannot be told from a close.
//
// # Why two generations?
//
// An event is taken out of the kernel before it is acted on. In between (1) its connection may be closed, (2) another one
// accepted under the same descriptor number: so an event names a slot and the slot's generation, never a descriptor or a
// pointer. And (1) the request may end, (2) the next one begin on the same connection: so Watch and Unwatch have a generation as well.
//
// # Why are read deadlines set late?
//
// fasthttp asks for two a request, and setting one takes 0.7 us. One is set when a read begins, and only if the one in force
// is not that or up to half a second later (see lazy).
//
// # What becomes of a slow reader?
//
// A write has Config.WriteTimeout to get on by at least a byte; time is given again for as long as bytes go out, however
// large the write. One deadline a response, as fasthttp's WriteTimeout is, would cut long streams. Setting a deadline at each
// write made a write of 200 bytes 1.7 us in place of 1.1, so one is set a quarter of the timeout at most.
//
// TCP_NOTSENT_LOWAT makes "gets on" mean something: without it the kernel queues megabytes and wakes the writer only after a
// third of them have left, so that a slow but steady reader looks like a stalled one. And it bounds what a stuck stream
// holds in the kernels of both ends: 271 KB in place of 3.8 MB, at no cost that could be measured in writes of 32 and 256 KB.
//
// TCP_USER_TIMEOUT is for the client that vanished without a word (a laptop's lid): a stream of small chunks would go into
// the kernel's queue for the 15 minutes of net.ipv4.tcp_retries2 before a write fails, and keep-alive probes alone need 150 s
// in prefill. It is three times WriteTimeout, so that a write that waits is most often given up by us before, after at most two
// and a half times, and answered with a reset, which the kernel would not send.
//
// # What becomes of a process without descriptors?
//
// [Patient] outlasts every failed accept, and [Room] keeps so many descriptors back from clients that the operator's pages, health
// checks and the workers' connections always have theirs: a client's connection counts twice, once for the worker that
// answers it (TestDescriptorsUsedUp in daemon/warmpath). To free one only when accept fails, the alternative, leaves none for
// the next health check, and a worker is taken for down that is well.
//
// # What becomes of half a head?
//
// It is answered when its time is over and let go of at once, or as soon as it is seen to have ended in bare line feeds, for
// which fasthttp would wait (see head).
//
// # Why golang.org/x/sys?
//
// The standard syscall package is frozen, lacks the two socket options and has no recv with flags for the peek loop.
package listen
