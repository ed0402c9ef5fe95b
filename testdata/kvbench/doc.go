// Kvbench measures the Redis door of the KV cache beside redis-server, in one run, taking turns: SET and GET of values
// of 1 KiB, 1, 4, 16 and 32 MiB by 1 and 8 clients. Each client has one command under way, as LMCache has. It prints
// one JSON line a figure: GB/s of both, the ratio, and the least that is asked of it.
//
//	make build && go run ./testdata/kvbench -bin bin/warmpath
//
// The client's part, two system calls a command, is the same for both and counts in.
package main
