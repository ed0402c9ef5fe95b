// Package peers lets several routers of the same workers route as one: each router sends the changes of its own books
// to the others, which apply them to theirs.
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
// A Teller writes frames of 25 ms for each pool (wire.go has the bytes): a request sent, with the hashes of its prompt;
// its first byte; the hashes of its answer; its end. Each second it adds a beat with the workers' names, and every four
// seconds the list of all requests in flight. A Hearer enters these records in index, reuse, queue, load and offered
// work with the time at which they happened, so that late records leave the same books (TestBooksAgree: four routers,
// 10,000 random operations, eviction too). It learns no speeds from others. A namespace is a number, as its name may
// hold a tenant's salt.
//
// Most short requests begin and end between two frames. All events of such a request are one record, which is looked up
// and entered once in place of twice, under one lock in place of three ([said]). Measured with three routers, with two
// builds in turns, that takes 3 to 12 us off the 48 to 57 us that history costs a short request; one that lasts longer
// than a round gains nothing. To begin the search for a chain where the pick found a worker's part of it gained
// nothing: an index that evicts holds less than was sent, so messages took 16 % more bytes.
//
// A Hearer reads a frame's requests first and enters them together ([news]), 16 chains at a time: their lookups go to
// memory that was not read for long, so the processor waits for all of them at once. That takes hearing to x.79 on a
// quiet machine and to x.87 on a busy one. The same on the sending side gained nothing.
//
// A chain of hashes names its beginning by one hash, if that was sent before ([chains]): all routers read one stream in
// one order, and a router that writes has read. A hearer that lacks a beginning requests that chains be sent in full
// again.
//
// # The stream
//
// Each pool has a Redis Stream, bounded by bytes, through github.com/redis/go-redis/v9 (cache/tier gives the reasons):
// users have a Redis, one write reaches any number of routers, and a router that starts learns from its content. What
// lost: a connection to each peer needs addresses, N writes and a snapshot protocol of its own; PUBLISH forgets. Times
// are those of Redis's clock. Each router compares its own with it every second, so a clock that is an hour off does no
// harm.
//
// # What a round trip costs
//
// With the library, 40 round trips a second took some 300 us each of a router that nearly idles, twice the rest of the
// history: four system calls, each reported to the scheduler, whose monitor then wakes and looks every 20 us for a
// while; deadlines; and two wakings of this room's own. So while requests come there is a connection of its own, the
// cable ([lane]). A request that has ended writes the queued records on it and reads new entries, if a round is due,
// and waits for nothing. One goroutine reads the answers and applies them. Both make bare system calls, through package
// socket. The two commands that this takes are written by hand: go-redis, rueidis and redigo wait for an answer, or
// have goroutines for it. go-redis makes the connection, password included, and serves all rare calls. It also stands
// in for the cable with TLS, and after any fault: the fault closes the cable, and an ordinary call finds the cause.
//
// # Without Redis
//
// A single router writes its view of the caches to a [StateFile] every minute, at SIGTERM and at the end, and reads it
// at a restart: the answers' frames, per worker the chain used last first, with the secret, the size of each worker's
// cache and its speed, the start of its process, the reuse curve, and the tokens in a byte of text (statewire.go has
// the bytes). With the file the hit rate goes on as before a restart; without it falls to nearly nothing
// (TestRestartIsNotAColdStart). The first page of metrics shows that a worker has restarted meanwhile; its part of the
// file is then dropped.
//
// The file is refused if it is broken, over an hour old, or of another release; and for one pool, if its models are
// others or no worker has the same id and URL. A part of the workers suffices: pods come and go. The file holds chains
// and not the tree, as the index keeps changing: prefix.Index.Each copies them some at a time, so no request waits
// long.
//
// # When something goes wrong
//
//   - A router is silent for 3 s: none of its requests counts as in flight any more. A gap in its frame numbers ends
//     its requests in flight as well, and a beat requests their list. Its older records of the workers' caches stay:
//     they were true, and age by the workers' own LRU; to drop them would widen the gap.
//   - Redis is away: no request waits for it. Frames are kept, 16 MB a pool, and sent when it is back.
//   - Redis answers, but refuses one pool's stream: that stream is set apart and tried again every second, so that it
//     fails no round of the others (TestOnePoolRefused). Redis is lost if it refuses all, and back when it takes a
//     message.
//   - Redis was flushed, or another server took over: the secret is stored again, also in the place of one that a
//     router made in the last 10 s that has started since (TestFlushedWhileARouterStarts). A stream whose ids begin
//     again is read anew. The frames of the seconds before are sent again under their old numbers. A router that has
//     applied them ignores them; another one learns the cached chains from them, but not the requests in flight.
//   - Another release, another secret, foreign or broken entries, a router that sends more than 50,000 records a
//     second: the messages are refused, counted, and logged once a minute. After a silence a router may send as much
//     for each second of it, since its records have queued up (TestBacklogIsNoFlood).
//   - A worker's id has another URL at another router: records about it are ignored, and a line is logged
//     (TestOtherWorkerUnderTheSameID).
//   - A worker dies: each router finds that itself. Only a replay of the past heeds the findings of others.
//
// # How the files lie
//
// Without sockets, clock and goroutines, so that routers can be simulated (Ends): chains with places, wire, teller and
// hearer with routers and news; notes leaves in said the events of a request, which teller writes later and story
// reads. With them: link is Redis, cable a connection of its own to it and lane its user, member one pool, tend its
// work of every second, gripes its log lines; peers sends and reads for all pools (tell, hear), and health records
// whether Redis is there. statewire is the bytes of a state file, and statefile reads and writes it.
package peers
