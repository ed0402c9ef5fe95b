// Package socket reads and writes TCP sockets without announcing each system call to Go's scheduler.
//
// # Why?
//
// syscall.Read and syscall.Write announce themselves to the scheduler, which lends the thread's processor to another
// thread if a call takes long. A write to a peer on the same machine, or one that the kernel preempts on a busy
// machine, takes longer than the 20 us after which the runtime's monitor looks. The monitor then hands the processor
// on, which wakes a thread, and the thread that comes back from its call has to wait for another. As long as it finds
// something to hand on, the monitor sleeps for 20 us only: a tenth of the daemon's CPU, and two thirds of its context
// switches. The sockets never block, so there is nothing to lend a processor for.
//
// So on Linux [Conn] makes the bare system call, inside of [syscall.RawConn]. Deadlines, close and the wait for the
// peer stay the runtime's own. bench/data counts the context switches (cpu/1KB-switches).
//
// # What it takes care of
//
// A call keeps its processor from the garbage collector's stops, so it moves [maxCall] bytes at most; an ordinary call
// moves what may be more. The race detector sees the memory that syscall.Read writes to, and not what a bare call
// writes: a build with it, and every other system, uses package net in the ordinary way (plain.go).
//
// # What lost
//
// An event loop of our own, with every system call inline: 3 % less than a goroutine a connection on a quiet machine,
// and worse than that on a busy one and at low rates.
//
// A pump: one goroutine that moves the pieces of all streams which wait for their workers. As bare relays, over nginx,
// at 50 streams of 50 events a second, 5 of 50 and 500 of 20: a goroutine a stream 1.2, 1.2 and 1.1; a pump whose epoll
// descriptor waits in Go's poller .8, 1.0 and .8; one that blocks in epoll_wait 2.5, 2.0 and 1.1, for the runtime's
// monitor takes its processor back every 10 ms and then looks every 20 us. In the daemon the first kind of pump lost:
// 1.18 of the CPU of a goroutine a stream at 50 streams of 50 events a second, 1.13 flat out. It saves the read that
// finds nothing, but the threads change .7 to 1 times a piece for .4 to .5, with one pump and with one a processor, and
// with the worker's socket taken out of Go's poller as well. It would save 4.6 KB of the 14 of an open stream.
package socket
