// Package transport is the wing of bytes on sockets. It has no code of its own: each folder below it is a package, and
// none of them knows what a prompt or a pool is.
//
//	listen       the clients' connections: who has left, who is idle, who is slow
//	upstream     one HTTP/1.1 request to a worker, and its answer
//	socket       reads and writes that do not wake Go's scheduler
//	certificate  a listener's certificate, and its dates
//	gate         API keys, limits of connections and requests, request ids
//	inflate      bodies that came compressed
//	spool        log lines, written by a goroutine of its own
//	jsonline     JSON, appended field by field
//	packed       a table's rows in few bytes, for the access log
//
// Read upstream/client.go first.
package transport
