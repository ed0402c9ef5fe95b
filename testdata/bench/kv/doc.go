// Kvbench measures the listeners of the KV cache in one run, taking turns, and prints one JSON line a figure. These are
// SET and GET of values of 1 KiB, 1, 4, 16 and 32 MiB by 1 and 8 clients beside redis-server, and reads of shared
// memory beside a plain copy of as many bytes. A client has one command under way, as LMCache has. Both servers are
// full, so that each SET evicts. A read of shared memory is a lease, the copy, and a release, over HTTP that is written
// by hand with calls that block: net/http as the client took longer than the daemon.
//
//	make build && testdata/run bench/kv -bin bin/warmpath [-sizes 1048576 -clients 1]
//
// With -l2 it measures daemons that keep nothing in memory of their own (l1 = false), at 1, 4 and 16 MiB: one over a
// redis-server, whose rate is other_GBps, one that is a member of a pool of three, and one that is no member, so that
// each of its values goes to another process, as with Redis. A put returns when L2 has the value; cpu_us is of the
// daemon and of what is behind it.
//
// With -stall it measures how long EXISTS, leases of keys that are nowhere, and requests through the router take while
// a Redis behind the daemon is stopped for 30 s, flushed and killed: 99 of 100 lookups within a millisecond, and no
// request 5 ms later than the slowest that goes straight to its worker. An idle redis-server gets the same EXISTS
// beside it: its times are the machine's own.
//
// A figure is the middle of the rounds, and the ratio that of the rounds' own ratios, as machines are noisy. The
// client's part, two system calls a command and a copy of the value, is the same for both and counts in. limit_GBps is
// the rate of the same client with a server that does nothing but the system calls. Where warmpath comes within a tenth
// of that, the client is the limit, and the ratio need only be 1. For shared memory limit_GBps is the rate of the same
// reader where leases are answered so: within a tenth of that the ratio has no mark. cpu_us is the server's time for a
// value.
package main
