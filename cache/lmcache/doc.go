// Package lmcache is the controller that LMCache's workers register with, and the coordinator that its multi-process
// server reports to. From their reports it knows which chunks of KV cache each worker holds in its own memory, on its
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
// # Two things that are done otherwise than upstream
//
// The real controller answers the first heartbeat of every worker with full_sync, and the worker freezes its cache for
// five seconds at least. This one asks only a worker of which it misses something: one that it does not know, or whose
// sequence numbers have a gap. And a worker may go on as soon as its own keys are in, not those of 80 % of the fleet.
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
// it here (Controller.Forget). In another store the chunks that servers have put there count until they delete them.
//
// # Chunk keys
//
// A key is a hash that only tokens and LMCache's release determine (see Variant). An instance reports neither which one
// it uses nor its chunk size. So the learner keeps the start of some recent prompts and tries all variants on them,
// until a key is among the chunks that the instance admits: the second request for a prompt is matched. The
// configuration can name both.
//
//	to 0.3.15     H((parent, tokens, None)), the rest of a prompt is a chunk too
//	0.4.1 on      H((parent, tokens, ()))
//	0.4.6 on      the same, a digest folded to its first eight bytes before it enters the next chunk
//	the server    blake3(parent, tokens as big-endian uint32), or H((parent, tokens, None))
//
// builtin is CPython's hash(): without vLLM it does not depend on PYTHONHASHSEED, beside vLLM its root does. Its None
// form is an address before Python 3.12, so those keys cannot be known; the instance is then warned of and does not
// count.
//
// # Shape
//
//	controller   sockets, over cache/zmtp       message, answer   bytes of the workers
//	coordinator  HTTP, items                    server            what its events do
//	fleet, apply who is there, their reports    directory         who holds a key; one look finds all instances
//	variant, pyhash, serial   keys              learn             which variant
//	roster, match             the answer to a request: one hash pass a variant, no allocation
//
// # Why
//
// See why.md; also for hostile peers.
package lmcache
