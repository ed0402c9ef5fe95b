// Package overflow keeps bodies of requests that are longer than memory is meant to hold, until the router knows where
// they go.
//
// A body longer than server.buffer_body_bytes is streamed to its worker. That needs a worker first. Where the workers
// serve different models and the body names its own behind pictures, or where a key may use some models only, the rest
// has to be read before anything can be sent. [Store.Keep] begins a [Body], Read adds to it, and Bytes gives all of it
// as memory that the kernel maps from a file.
//
// # Rules
//
// The file has no name from the moment at which it is made, so nothing is left of it, however the process ends. Its
// descriptor is closed as soon as no more is to be added. Limits bounds what all bodies together take on the disk, and
// each client has its part of that (TestLimits). The owner of a body closes it after its last read, which frees the
// memory.
//
// An error of the file is a [Failure], which names no body. One that shows later, when the disk cannot read what it
// wrote, is a memory fault: Bytes turns it into a panic of the reading goroutine, which ends one request
// (TestADiskThatForgets).
//
// why.md has the reasons and the details, and what lost.
package overflow
