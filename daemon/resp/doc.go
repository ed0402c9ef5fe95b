// Package resp is the Redis door of the KV cache: what LMCache's remote_url = "redis://" or "resp://" reaches, and any
// other client of Redis. It speaks RESP2, and RESP3 to who asks for it by HELLO 3, over a kvstore.Store.
//
// # Which commands are there?
//
// Those that LMCache and the usual clients send: SET with EX, PX, EXAT, PXAT, NX, XX, GET, MGET, EXISTS, DEL, UNLINK,
// STRLEN, TTL, PTTL, DBSIZE, INFO, PING, ECHO, HELLO, AUTH, SELECT, CLIENT, COMMAND, CONFIG GET, RESET and QUIT. Each
// database of SELECT is a namespace of its own. Replies are redis-server 7.0's to the byte; TestRecorded replays what
// LMCache 0.3.9.post2, 0.4.3 and 0.5.6 sent to one, TestRealClients runs redis-cli, redis-benchmark, go-redis and
// redis-py.
//
// # Which rules does LMCache's native client force on us?
//
// The client behind resp:// never reconnects, waits for ever when GET answers a miss, and takes any other wrong
// answer to GET for the value (LMCache 0.4.3 and 0.5.6). So:
//
//   - EXISTS that answers :1 promises the value to the client's address for Config.Promise, 30 s, or until its GET.
//     What only L2 has is fetched at once for such a client, before L2 can evict it; what L2 may have evicted since it
//     was known to have it is answered :0, and asked for in the background (TestExistsFetchesForNativeClients,
//     TestRedisEvicts in cache/kvstore/remote). What L2 loses between its last count of evictions, a second ago at
//     most, and the fetch is a promise that nobody can keep: it is counted and logged.
//   - GET answers the value or a miss. It never answers an error, not even to a client that has yet to authenticate
//     (that one gets a miss), and no connection is closed in the middle of it but for a client that stopped reading.
//   - No connection is closed for being idle. Who vanished is found by TCP's keep-alive.
//   - A value that does not fit is refused at SET, after its bytes were read and thrown away.
//
// # What may a client that means harm take?
//
// Memory for a command's arguments as their bytes come, 8 MiB a connection; before AUTH ten arguments of 16 KiB, as in
// Redis (TestArgumentsAreBounded). Room for a value when 8 KiB of it have come, and half of the memory for all that is
// being sent (TestAnnouncedBodies). A command must have come in 30 s and a second for each MiB (TestSlowBodies).
//
// The name of a daemon of the pool opens all keys, so it is refused to who neither has the password nor, where there is
// none, comes from a member's address (TestPeer).
//
// # Why by hand?
//
// A value of SET is read from the socket into its place in the arena, and GET writes it from there with writev. The
// servers that there are (tidwall/redcon, MIT) hand over a command as bytes that they have gathered in a growing
// buffer, which was 2.5 to 3 times slower at 1 MiB. testdata/kvbench measures this one beside redis-server.
//
// Reads and short replies go through package socket, untold to Go's scheduler: a command with 1 KiB cost 1.4 to 1.7
// times the processor time without. A value goes with one ordinary writev. What brought nothing: SO_RCVLOWAT, to be
// woken once for more of a value; and to let other connections run after a reply (runtime.Gosched), so that the next
// command has come before it is read for. Of a SET of 1 KiB three quarters are the kernel's calls and Go's scheduler.
//
// # How large are the kernel's buffers?
//
// Linux begins with 128 KiB for what has come and enlarges that as it is read, too late for eight clients with 4 MiB
// each. A client that may send its value in one go leaves the processor to the server: 1.2 to 1.5 times the speed of
// redis-server by SET of 4 MiB, with 940 us of processor time in place of 1,400, and 1.95 to 2.4 times at 16 MiB (8
// clients, on two cores). It is asked for by SO_RCVLOWAT, for a moment: the kernel keeps the room that this makes,
// below net.ipv4.tcp_rmem, and goes on to enlarge it. SO_RCVBUF would fix it, below net.core.rmem_max, which is less
// than what it grows to.
//
// To a client of the same machine the fewer bytes are under way the better, as they are read while the processor's
// cache has them: with SO_SNDBUF of 512 KiB GET of 1 MiB went from 1.7 to 2.0 times the speed of redis-server, of 4 MiB
// from 2.5 to 3.2 (8 clients), with a fifth less processor time. Half of that was worse with one client, twice that no
// better than none; net.core.wmem_max of 208 KiB, which many systems have, costs half of the gain. TCP_NOTSENT_LOWAT
// was worse than nothing. Clients elsewhere keep the kernel's own size: on a long way it would bound their speed.
package resp
