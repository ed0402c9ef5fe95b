// Package hyperpod is the door of the KV cache for LMCache's remote_url = "sagemaker-hyperpod://": it stands where
// the tiered-storage daemon of SageMaker HyperPod does. A worker on the same machine puts values over HTTP and reads
// them out of shared memory, at the offsets that a lease names: no byte of a value goes through a socket when it is
// read.
//
// # The protocol, as LMCache 0.3.9.post2, 0.4.3 and 0.5.6 speak it
//
//	PUT    /v1/kv/{bucket}/{key}                  the body is the value. 200, or 409 if the key has one already
//	POST   /v1/kv/{bucket}/{key}/leases?ttl_s=30  200 {"id":"...","offsets":[{"offset":n,"len":n},...]}, or 404
//	POST   /v1/leases/{id}/release                200, or 404
//	DELETE /v1/kv/{bucket}/{key}/leases/{id}      the same, before LMCache 0.3.10
//
// The value's bytes are the pieces of /dev/shm/NAME at those offsets, in order. {key} has slashes of its own,
// escaped: the path is split before it is unescaped. A PUT of no bytes is answered 400. TestRecorded replays what the
// three versions sent.
//
// A miss is answered at once. LMCache looks keys up by leases that it releases at once, one after the other until the
// first miss, and reads by another lease. So what this daemon does not know L2 to have is asked of no server, but in
// the background; what it knows is fetched, for timeout_ms at most (TestLookups).
//
// # What does a lease do?
//
// It keeps the value where it is, whatever is put, evicted or deleted, until it is released or its time is over. So a
// worker that dies keeps nothing for longer than ttl_s, 60 s at most. Package arena says how the segment outlives
// workers and restarts. Workers map it writable: nothing is kept in it but values.
//
// # Why fasthttp?
//
// It serves the clients already, and streams a body to its handler: from the socket into the value's place. net/http
// does so too, but wakes a second goroutine at each request, to notice a client that leaves: a lease took two and a
// half times as long, and three to four times the processor time. Room listen reads and writes the sockets, bounds
// their number, and lets a client read why its value is refused while it still sends it.
//
// The protocol has no keys: let it listen where only workers are.
package hyperpod
