// Package peers lets several routers of the same workers route as one: what a router does to its own books it tells the
// others, and they do the same to theirs.
//
// # Why the history, and not less
//
// Simulated with four routers, those that share nothing lose 26 to 86 times in mean time to first token. Counts in
// flight alone, and load scraped from the workers, gain nothing over that; conversations hashed onto routers cost up to
// 25 times with many tenants. The whole history 10 ms late costs nothing, 50 ms late up to 5 %, with 16 routers too.
//
// # What is told
//
// Per pool, in frames of 25 ms (wire.go has the bytes): a request sent with the hashes of its prompt, its first byte,
// its answer's hashes, its end; every second a beat with the workers' names; every four seconds all that is in flight.
// The hearer enters it in index, reuse, queue, load and offered work with the time at which it happened, so that what
// is late leaves the same books (TestBooksAgree: four routers, 10,000 random operations, eviction too). It learns no
// speeds from others. A namespace is a number, as its name may hold a tenant's salt.
//
// What a request has done by the time that its sending is told is told with it, as one record: most short requests
// begin and end between two frames, and are then looked up and entered once in place of twice, and locked for once in
// place of thrice ([said]). Measured with three routers, with two builds in turns, that takes 3 to 12 us off the 48
// to 57 us that history costs a short request; one that lasts longer than a round gains nothing. To begin the look for
// a chain where the pick found that some worker holds it gained nothing: an index that evicts knows less than was told,
// so 16 % more bytes were told.
//
// A frame's requests are read first and entered together ([news]), 16 chains at a time: what they are looked up in lies
// in memory that was not read for long, and so the processor waits for all of them at once. That takes hearing to x.79
// on a quiet machine and to x.87 on a busy one. To do the same for what is told gained nothing.
//
// A chain of hashes names its beginning by one hash, if that was told before ([chains]): all routers read one stream in
// one order, and who writes has read. A beginning that a hearer does not know it asks to have told in full again.
//
// # The stream
//
// A Redis Stream for each pool, bounded by bytes, through github.com/redis/go-redis/v9 (cache/tier says why): users
// have a Redis, one write reaches any number of routers, and what is in it is what a router that starts can learn. What
// lost: a connection to each peer needs addresses, N writes and a snapshot protocol of its own. PUBLISH forgets. Times
// are those of Redis's clock, which each router compares with its own every second, so a router whose clock is an
// hour off is heard like any other.
//
// # What a round trip costs
//
// The library's took some 300 us of a router that nearly idles, 40 times a second, twice what all else of the history
// took: four system calls, of each of which the scheduler is told, so that its monitor wakes and looks every 20 us for
// a while; deadlines; two wakings of this room's own. So while requests come there is a connection of its own, the
// cable ([lane]): a request that has ended writes on it what was told and asks for what is new, if that is due, and
// waits for nothing; one goroutine reads the answers and applies them. Both make bare system calls, through package
// socket. Redis's protocol is written by hand for the two commands that this takes: the libraries that there are
// (go-redis, rueidis, redigo) wait for an answer, or have goroutines for it. go-redis makes the connection, with
// password and all, does everything that is seldom, and stands in for the cable where there is none: with TLS, and
// while something is wrong, which closes the cable and leaves it to an ordinary call to find out what it is.
//
// # Without Redis
//
// One router alone writes what it believes to a [StateFile] every minute, at SIGTERM and at the end, and a restart
// reads it: the answers' frames, per worker the chain used last first, with the secret, the size of each worker's
// cache and its speed, the start of its process, the reuse curve, and the tokens in a byte of text (statewire.go has
// the bytes). With it the hit rate goes on as it was, where it falls to nearly nothing without:
// TestRestartIsNotAColdStart. A worker that restarted meanwhile is known by its first page of metrics, and what the
// file has of it is dropped.
//
// The file is refused if it is broken, over an hour old, or of another release; and for one pool, if its models are
// others or no worker has the same id and URL. A part of the workers suffices: pods come and go. Chains are written and
// not the tree, as the index keeps changing: prefix.Index.Each copies them some at a time, so no request waits long.
//
// # When something goes wrong
//
//   - A router that is not heard for 3 s has nothing in flight any more. A gap in its numbers ends what it had in
//     flight, and it is asked to tell that again. What it had told before of the workers' caches stays: it was true,
//     and ages by the workers' own LRU; to drop it would make the gap wider.
//   - Redis is away: nothing waits for it on the way of a request. Frames are kept, 16 MB a pool, and sent when it is
//     back.
//   - Redis answers, and refuses a pool's stream: that one is set apart and tried again every second, so that it fails
//     no round of the others (TestOnePoolRefused). Redis is lost if it refuses all, and back when it takes a message.
//   - Redis was flushed, or another took over: the secret is put back, also in the place of one that a router made in
//     the last 10 s that has started since (TestFlushedWhileARouterStarts). A stream whose ids begin again is read
//     anew.
//     What was told in the seconds before is told again under its old numbers: who heard it passes it over, who did not
//     learns what was held, but not what was in flight.
//   - Another release, another secret, foreign or broken entries, a router that tells more than 50,000 things a second:
//     not believed, counted, logged once a minute. After a silence a router may tell as much for each second of it: so
//     much it has to tell when Redis comes back (TestBacklogIsNoFlood).
//   - A worker's id has another URL at another router: what that one tells of it is not believed, and logged
//     (TestOtherWorkerUnderTheSameID).
//   - A worker's death is each router's own finding. Only who replays the past heeds what others have found.
//
// # How the files lie
//
// Without sockets, clock and goroutines, so that routers can be simulated (Ends): chains with places, wire, teller and
// hearer with routers and news; said, by notes, is what a request leaves on its way for the teller to write later, and
// story reads it. With them: link is Redis, cable a connection of its own to it and lane who uses that, member one
// pool, tend what it does every second, gripes what it logs; peers runs tell and hear over all, and health knows
// whether Redis is there. statewire is the bytes of a state file, and statefile reads and writes it.
package peers
