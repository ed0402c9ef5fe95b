// Package events publishes what an engine's caches hold, as vLLM does: KV events over ZeroMQ.
//
// One Publisher is one engine process, so its sequence begins at 0 with the first batch. It lives behind the engine's
// driver: Publish numbers a batch, encodes it, keeps it for replay and queues it for each subscriber, and never waits.
// Sockets are those of cache/zmtp.
//
// # The wire
//
//	PUB     [topic] [sequence, 8 bytes] [payload]            payload: [ts, [event, ...], data_parallel_rank]
//	ROUTER  in   [] [start, 8 bytes]
//	        out  [] [topic] [sequence] [payload] ... [] [] [ff * 8] []     Map, vLLM 0.26 and later
//	             [] [sequence] [payload] ...         [] [ff * 8] []        Array, before
//
// encode_test.go writes the recorded batches of vLLM 0.32.0 and 0.19.1 again and wants the same bytes.
//
// # Faults
//
// A fault begins between two batches. Sequence and replay buffer always go on, so a reader that asks for a replay can
// mend what a fault broke: fault_test.go plays each of them against a reader that does.
//
// why.md has the reasons and the details, and what lost.
package events
