// Package lmcache is the controller that LMCache's workers register with, and the coordinator that its multi-process
// server reports to. It learns from their reports which chunks of KV cache each worker holds in its own memory, on its
// disk and in the stores behind it, and answers for a prompt's token ids how many tokens of it each worker has.
//
// # Which release speaks how
//
// The source of the messages is lmcache/v1/cache_controller/message.py, of the events lmcache/v1/mp_coordinator/api.py.
// testdata has what workers of the releases in the second row sent. One set of ports serves all three generations:
//
//	                  to 0.3.9                  0.3.10, 0.3.11           0.3.12 to 0.5.6
//	recorded          0.3.9.post2                                        0.4.3, 0.5.6
//	RegisterMsg       PUSH to pull, no answer   PUSH to pull             DEALER to reply, answered
//	HeartbeatMsg      PUSH to pull              PUSH to pull             DEALER to heartbeat, answered
//	operations        one a message             batches                  batches with sequence numbers
//	full sync         none                      none                     start and status to reply, keys to pull
//	the multi-process server, 0.5.0 to 0.5.6: HTTP to coordinator, JSON
//
// # What is never wrong
//
// A view may have too little, never too much. Whatever could have lost an eviction clears it: a gap, a reconnection of
// a worker without sequence numbers, two workers under one name, more chunks than the limit, a registration, a
// connection that is gone for 30 s. A chunk counts when all ranks that have registered hold it; of a server, when all
// ranks of its world_size do. The disk has no full sync in LMCache: after a gap it fills again with what is written
// from then on.
//
// A server does not learn what the store behind it loses, and so cannot report it. This daemon's own KV cache reports
// it here (Controller.Forget). A chunk that a server has put into any other store counts until a server deletes it.
//
// # Why
//
// See why.md; also for hostile peers.
package lmcache
