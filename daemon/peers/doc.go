// Package peers lets several routers of the same workers route as one: each router publishes the changes of its own
// books, and applies those of the others to its books.
//
// # Why the history, and not less
//
// In simulations with four routers, those that share nothing lose 26 to 86 times in mean time to first token. To share
// counts in flight alone, or to scrape load from the workers, gains nothing over that; to hash conversations onto
// routers costs up to 25 times with many tenants. The whole history 10 ms late costs nothing, 50 ms late up to 5 %,
// with 16 routers too.
//
// # What is sent
//
// A Sender writes frames of 25 ms for each pool (wire.go has the bytes): a request sent, with the hashes of its prompt;
// its first byte; the hashes of its answer; its end. Each second it adds a beat with the workers' names, and every four
// seconds the list of all requests in flight. A Receiver applies these records to index, reuse, queue, load and offered
// work as of the time at which they happened, so that late records leave the same books (TestBooksAgree). It learns no
// speeds from others. A namespace is a number, as its name may hold a tenant's salt.
//
// All events of a request that begins and ends between two frames are one record, which is looked up and entered once
// ([eventQueue]): 3 to 12 us less of the 48 to 57 us that history costs a short request.
//
// A chain of hashes names its beginning by one hash, if that was sent before ([chains]): all routers read one stream in
// one order, and a router that writes has read. A Receiver that lacks a beginning requests chains in full. To begin the
// search for it where the pick found a worker's part of the chain gained nothing: an index that evicts holds less than
// was sent, so messages took 16 % more bytes.
//
// # The stream
//
// Each pool has a Redis Stream, bounded by bytes, through github.com/redis/go-redis/v9 (cache/tier gives the reasons):
// users have a Redis, one write reaches any number of routers, and a router that starts learns from its content. What
// lost: a connection to each peer needs addresses, N writes and a snapshot protocol of its own; PUBLISH forgets. Times
// are those of Redis's clock, with which each router compares its own every second.
//
// While records come, one round trip in 25 ms writes and reads, 40 a second; in a silence a blocking read waits. why.md
// has what was tried to make that cheaper, and what it saved.
//
// # Without Redis
//
// A single router writes its view of the caches to a [StateFile] every minute and at the end, and reads it at a
// restart: the answers' frames, per worker the chain used last first, and what each worker is known by (statewire.go
// has the bytes). Without the file the hit rate falls to nearly nothing after a restart (TestRestartIsNotAColdStart).
// The file is refused if it is broken, over an hour old, or of another release; for one pool, if its models are others
// or no worker has the same id and URL; and for one worker, if that has restarted meanwhile. It holds chains and not
// the tree, as the index keeps changing: prefix.Index.Each copies them some at a time, so no request waits long.
//
// # When something goes wrong
//
//   - A router is silent for 3 s, or a gap in its frame numbers: none of its requests counts as in flight any more; a
//     beat after a gap requests their list. Its older records of the caches stay: they age by the workers' own LRU.
//   - Redis is away: no request waits for it. Frames are kept, 16 MB a pool, and sent when it is back. If it refuses
//     one pool's stream alone, that stream is tried again every second beside the others (TestOnePoolRefused).
//   - Redis was flushed, or another server took over: the secret is stored again (TestFlushedWhileARouterStarts), and
//     the frames of the seconds before are sent again under their old numbers, which routers that applied them ignore.
//   - Another release, another secret, foreign or broken entries, a router that sends more than 50,000 records a
//     second: the messages are refused, counted, and logged once a minute. After a silence a router may send as much
//     for each second of it (TestBacklogIsNoFlood).
//   - A worker dies: each router finds that itself. Only a replay of the past heeds the findings of others.
//   - A worker's id has another URL at another router: records about it are ignored, and a line is logged
//     (TestOtherWorkerUnderTheSameID).
//
// # How the files lie
//
// Without sockets, clock and goroutines, so that routers can be simulated (NewPair): chains with positions, wire,
// sender with enqueue and events, receiver with routers, requests and outcome. enqueue queues the events of a request,
// which sender writes into frames later. With sockets: link is Redis, member one pool, tend its work of every second,
// warnings its log lines. peers serves all pools: exchange sends and reads in one round trip, read reads alone and
// replays, and health records whether Redis is there. statewire is the bytes of a state file, and statefile reads and
// writes it.
package peers
