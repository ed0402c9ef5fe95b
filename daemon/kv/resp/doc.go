// Package resp is the KV cache's listener for Redis clients. LMCache reaches it by remote_url = "redis://" or
// "resp://", and so does any other client of Redis. It serves a kvstore.Store in RESP2, and in RESP3 to clients that
// send HELLO 3.
//
// # Which commands are there?
//
// Those that LMCache and the usual clients send (the table in commands.go). Each database of SELECT is a namespace of
// its own. Replies are redis-server 7.0's to the byte: TestRecorded replays what LMCache 0.3.9.post2, 0.4.3 and 0.5.6
// sent to one, TestGoRedis, TestRedisTools and TestRedisPy run go-redis, redis-cli, redis-benchmark and redis-py.
//
// # Which rules does LMCache's native client force on us?
//
// The client behind resp:// never reconnects, waits for ever when GET returns a miss, and takes any other wrong reply
// to GET for the value (LMCache 0.4.3 and 0.5.6). So:
//
//   - An EXISTS that returns :1 promises the value to the client's address for Config.Promise, 30 s, or until its GET.
//     For such a client, a value that only L2 has is fetched at once, before L2 can evict it. If L2 may have evicted it
//     since the last proof of it, EXISTS returns :0, and a request in the background finds out
//     (TestExistsFetchesForNativeClients, TestRedisEvicts in cache/kvstore/remote). If L2 loses it between its last
//     count of evictions, a second ago at most, and the fetch, the broken promise is counted and logged.
//   - GET returns the value or a miss, never an error, not even to a client that has yet to authenticate. The listener
//     closes no connection in the middle of a GET unless its client stopped reading, and no idle one that has sent a
//     command: TCP's keep-alive finds clients that vanished.
//   - A value that does not fit is refused at SET, after the listener has read its bytes and dropped them.
//
// # Why
//
// why.md has why commands are read by hand, which sizes of the kernel's buffers were measured, and what brought
// nothing.
package resp
