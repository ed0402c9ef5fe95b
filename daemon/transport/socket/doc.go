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
// why.md has the reasons and the details, and what lost.
package socket
