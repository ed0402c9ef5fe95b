// Package kvevents follows the KV events of workers: which blocks of tokens each stores and evicts. It hands them in
// order to a Sink and knows no index. The bytes are those of vLLM 0.9 to 0.32; testdata has recordings. SGLang 0.5
// publishes as vLLM 0.11 did, by its srt/disaggregation/kv_events.py and KVCacheEventMixin: a block for each page.
//
// # The shape
//
// A Subscriber is for one publisher: a worker, or one data-parallel rank of it. It dials the worker, or takes a
// connection of one that dials us, and reads into a queue with a bound. One goroutine takes from the queue and drives a
// follower, which is the whole logic of sequences without a socket: it compares each batch with its ledger, asks the
// replay socket for what is missing, and passes the events on through a Decoder. While the queue is full the socket is
// not read, so a worker that sends more than can be applied drops at its own high-water mark, and its sequence shows
// it.
//
// # When a source is believed
//
// Live is the only state in which the sink's view is all that the worker holds. A Subscriber that connects asks for a
// replay from 0, so a router that was restarted knows at once. Partial means that the beginning is gone (the publisher
// keeps 10,000 batches) or cannot be asked for. What the sink then has is true, and incomplete: above all the system
// prompts are missing, which are stored first and stay, and with them everything below them. So Partial is not to be
// believed. It ends with the worker's next clearing of its cache, or its next process. Every other doubt clears the
// sink: a gap that cannot be replayed, a removal that cannot be read, another process.
//
//   - A batch that comes late or twice is known by its content, not by its number: the numbers of a new process start
//     at 0 again. The follower keeps the checksums of the last 1024 batches.
//   - After a new connection, a second after each batch that no other follows, after requests that the worker is known
//     to have served, and then every 30 s, the last applied batch is asked for again. If it differs, the process is a
//     new one; if more follows it, those batches were missed without a later one that shows the gap.
//   - One gap after another is not bridged each time: what comes is dropped for a second, and then asked for at once.
//     The view is kept meanwhile, and not believed. Batches that keep coming in the wrong order are such gaps.
//   - Silence does not mean that a worker has ended. The connection is pinged, and the worker's health is probed by
//     HTTP.
//   - A request with kv_cache_report_mode makes a worker of 0.26 or later announce blocks again that it holds once:
//     they count twice until it clears its cache. Such events differ only in their session, so the router must not pass
//     the field on to workers. TestRecordedBelief has one.
//
// why.md has the reasons and the details, and what lost.
package kvevents
