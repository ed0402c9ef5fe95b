// Package hyperpod is the KV cache's listener for LMCache's remote_url = "sagemaker-hyperpod://". It takes the place of
// the tiered-storage daemon of SageMaker HyperPod. A worker on the same machine puts values over HTTP and reads them
// out of shared memory, at the offsets that a lease names: a read sends no byte of a value through a socket.
//
// # The protocol, as LMCache 0.3.9.post2, 0.4.3 and 0.5.6 speak it
//
//	PUT    /v1/kv/{bucket}/{key}                  the body is the value. 200, or 409 if the key has one already
//	POST   /v1/kv/{bucket}/{key}/leases?ttl_s=30  200 {"id":"...","offsets":[{"offset":n,"len":n},...]}, or 404
//	POST   /v1/leases/{id}/release                200, or 404
//	DELETE /v1/kv/{bucket}/{key}/leases/{id}      the same, before LMCache 0.3.10; 404 if it is another key's
//
// The value's bytes are the pieces of /dev/shm/NAME at those offsets, in order. {key} has slashes of its own, escaped:
// the path is split before it is unescaped. A PUT of no bytes gets 400. TestRecorded replays what the three versions
// sent.
//
// A miss returns at once. LMCache looks keys up by leases that it releases at once, one after the other until the first
// miss, and reads by another lease. So for a value that L2 is not known to have, the listener only starts a query in
// the background. A value that L2 is known to have is fetched, for timeout_ms at most (TestLookups). If memory need not
// keep it, it stays for a few seconds all the same, so that the read does not fetch it again (TestLookupThenRead).
//
// # Why fasthttp?
//
// It serves the clients already, and streams a body to its handler: from the socket into the value's place. net/http
// does so too, but wakes a second goroutine at each request, to notice a client that leaves: a lease took two and a
// half times as long, and three to four times the processor time. Package listen reads and writes the sockets, bounds
// their number, and lets a client read the reason for a refusal while it is still sending.
//
// The protocol has no authentication: let it listen where only workers are. It refuses what web pages send.
//
// why.md has the reasons and the details, and what lost.
package hyperpod
