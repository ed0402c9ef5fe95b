// Package daemon is the process: HTTP in, HTTP out, and everything wired together.
//
// # Life of a request
//
//  1. room listen accepts the connection, watches for a client that leaves, and gives each write a deadline.
//  2. front.go sees the header first: framing that two readers may read differently, CORS, keys and overload are answered
//     before a byte of the body is read. intake.go then reads the body, up to server.buffer_body_bytes into memory; the rest
//     of a longer one is streamed to the worker. From here on values only, no fiber type: an [Inbound].
//  3. exchange.go has the body read once (room prompt): model, stream, session key, the prompt's block hashes. Malformed
//     JSON goes on to a worker, whose 400 is the honest one. permit.go refuses what the caller's key does not allow, and for
//     a key with a list of models all that a worker may read otherwise than we do (TestAKeysModelsHold). path.go gives a path
//     one spelling before. A stored response belongs to the key that made it (TestAStoredResponseIsItsKeys).
//  4. The first pool whose patterns fit the model serves it. worker.Pool.Snapshot gives a row for each worker that is up,
//     has room and lists the model; none: 503, 429 or 404.
//  5. view.go fills what depends on the prompt: one walk of the prefix index for all rows, free room and chance of reuse.
//     sessions.go finds the request's session: SageMaker's id, a stored response, X-Session-Id, a cookie of ours, a field of
//     the body, in that order. A live binding sets Header.Bound under every strategy; it is left only when its worker is down.
//     While the store is silent, what this router holds goes on. Any other opened session or stored response gets 503 and
//     Retry-After: it is never said not to exist, and never served elsewhere. Any other key goes to the worker that every
//     router chooses alike (alike.go), and comes home when the store answers (TestAPauseOfRedisMovesNoSession).
//     sagemaker.go and opening.go stand around all of this on SageMaker's paths, and rest.go is their plain twin.
//  6. host.Current.Pick asks the strategy, a wasm module, for an ordered choice. Whatever goes wrong in there, the same
//     call answers with the host's own fallback.
//  7. send.go tries the choice in its order until one gives an answer: up to then nothing reached the client, and a
//     worker that refuses, or closes without a byte, costs only time. The prompt enters the index as soon as it is sent.
//  8. answer.go holds the answer back until its first output. vLLM tells of many failures inside a 200; whoever fails before
//     output is replaced, within the pool's retry budget. So is a worker that goes down and sends nothing for down_grace: it
//     tells the attempts in flight there (worker/grace.go).
//  9. relay.go and stream.go hand the stream on, one read of the worker's a write to the client, and listen. What fails from
//     here on is told by an error event, and the connection never ends cleanly after it. A worker's own error event goes to the
//     client as it is, and the stream ends as the worker ends it.
//  10. At its end, once, whoever ends it: the answer enters the index in the form in which the client will send it back, the
//     worker's count goes down, what was seen is learnt, measured and, if asked for, logged (access.go).
//
// # Who owns what
//
// State has three owners with a lock each: worker.Pool (who is up, load, speed), prefix.Index (who holds what), tier.Store
// (who is bound, through session.Bindings). The store is the daemon's; a [pool] holds the other two for one [[pools]] table
// and outlives reloads as long as its name stays. The set of pools is one atomic pointer; a request reads it once.
//
// # What an operator is told
//
// A request has one line in the access log and counts once in warmpath_requests_total, whether a worker answered it, the router
// itself, or the door refused it (TestEveryAnswerIsCountedAndLoggedOnce). No request waits for that line: room spool keeps
// lines while a pipe is not read or a disk hangs, and lines beyond its room are lost, counted and told
// (TestNobodyReadsTheAccessLog). Every line about a request has its id and pool, and what varies stands in attributes, so that
// a message can be alerted on. A label whose values a client could make up is bounded; pool is a label of everything that a
// pool does, as two pools may use the same worker ids. The series of a worker or pool that has left the configuration go a
// minute after its last request (TestSeriesOfGoneWorkersGo). serving.go tells of pools that cannot serve: in the log, on
// /ready, in the 404.
//
// # Where the time goes
//
// A chat of 1 KB with an answer of 200 bytes costs 95 us of CPU where nginx, in the same run of testdata/databench -run cpu on
// two busy shared cores, costs 33: 2.8 times (3.9 times, at 31 allocations in place of 11, before what is told below). Most of
// it is spread thin. In a profile of 32 connections, roughly, as the shares overlap a little:
//
//	31 %  the kernel: 23 % the two writes, the rest four reads, of which two find nothing
//	 5 %  the runtime's scheduler and poller: two waits a request
//	 7 %  the clock: some fifteen looks at it, 0.05 to 0.2 us each
//	 5 %  allocation; collection half a percent: the strategies' memories make the heap so large that it seldom runs
//	 7 %  fasthttp's own code, without the reads and writes
//	 6 %  copies and comparisons of bytes in the standard library
//	 6 %  locks and pools, none of them contended
//	 6 %  prompt: the request's JSON, its hashes, the answer's JSON
//	 5 %  the prefix index and the reuse curve: match, touch twice, note
//	 2 %  the strategy, wasm included
//	 1 %  metrics
//	18 %  the rest of this package, worker, upstream and listen
//
// A request of 256 KB is 42 % kernel, 17 % the scan for the ends of strings (4 GB/s) and 14 % hashing. A chunk of a stream is
// three quarters kernel: one read and one write.
//
// What paid, each measured with old and new binary taking turns: a context that is part of the visit (life.go), 12 %; no fiber,
// no unread debug line and one allocation for a first attempt, 7 %; kept series in place of label look-ups (series.go), 4 % of a
// profile; the request sent inside the wait for its answer (upstream), a read and a lock of 1.3 us; read deadlines set only
// when a read needs them (listen), two timer changes of 0.7 us; the last two are too small for
// such a comparison here. Left alone: GOGC, as there is hardly any collection, and the look at a pooled connection that is
// young: a worker that half-closes it would be waited for until header_timeout.
//
// # Why these libraries
//
// fiber with fasthttp v1.73.0: the parser of the version that fiber asks for lets smuggled requests through.
// prometheus/client_golang: the format has one well-kept implementation. Both are imported in this package alone.
package daemon
