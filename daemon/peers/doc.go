// Package peers lets several routers of the same workers route as one: each router publishes the changes of its own
// books, and applies those of the others to its books.
//
// why.md has why routers share the whole history, and what was tried and lost.
//
// # What is sent
//
// A Sender writes frames of 25 ms for each pool (wire.go has the bytes): a request sent, with the hashes of its prompt;
// its first byte; the hashes of its answer; its end. Each second it adds a beat with the workers' names, and every four
// seconds the list of all requests in flight. A Receiver applies these records to index, reuse, queue, load and offered
// work as of the time at which they happened, so that late records leave the same books (TestBooksAgree). It learns no
// speeds from others. A namespace is a number, as its name may hold a tenant's salt.
//
// The routers divide the questions to the workers (worker.Pool.Share). Each second a router publishes the good checks
// and the pages of metrics of the workers that it asks, and a failed check at once (seen.go).
//
// A chain of hashes names its beginning by one hash, if that was sent before ([chains]): all routers read one stream in
// one order, and a router that writes has read. A Receiver that lacks a beginning requests chains in full.
//
// # The stream
//
// Each pool has a Redis Stream, bounded by bytes, through github.com/redis/go-redis/v9 (cache/tier gives the reasons):
// users have a Redis, one write reaches any number of routers, and a router that starts reads its content. Times are
// those of Redis's clock, which each router compares with its own.
//
// While records come, one round trip in 25 ms writes and reads, 40 a second; in a silence a blocking read waits.
//
// # Without Redis
//
// A single router writes its view of the caches to a [StateFile] every minute and at the end, and reads it at a
// restart. It appends what has changed to a log, until that is longer than the file; then it writes all anew. In both
// are the answers' frames, per worker the chain used last first, and what each worker is known by (statewire.go has
// the bytes). Without the file the hit rate falls to nearly nothing after a restart (TestRestartIsNotAColdStart).
// The file is refused if it is broken, over an hour old, or of another release; for one pool, if its models are others
// or no worker has the same id and URL; and for one worker, if that has restarted meanwhile.
//
// # When something goes wrong
//
//   - A router is silent for 3 s, or a gap in its frame numbers: none of its requests counts as in flight any more; a
//     beat after a gap requests their list. Its older records of the caches stay: they age by the workers' own LRU.
//   - Redis is away: no request waits for it. Frames are kept, 16 MB a pool, and sent when it is back. If it refuses
//     one pool's stream alone, that stream is tried again every second beside the others (TestOnePoolRefused).
//   - Redis was flushed, or another server took over: the secret is stored again (TestFlushedWhileARouterStarts), and
//     the last seconds' frames are sent again.
//   - Another release, another secret, foreign or broken entries, over 50,000 records a second from one router: the
//     messages are refused, counted, and logged once a minute (TestBacklogIsNoFlood).
//   - A worker's id has another URL at another router: records about it are ignored, and a line is logged
//     (TestOtherWorkerUnderTheSameID).
package peers
