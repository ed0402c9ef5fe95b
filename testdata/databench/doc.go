// Databench measures what the daemon costs as a proxy, beside nginx, haproxy and Go's ReverseProxy in the same run, and
// prints one JSON line a figure with its target, in the form of testdata/benchjson:
//
//	go run ./testdata/databench -bin bin/warmpath        # about 3 minutes; -quick: 30 s
//	{"name":"cpu/1KB/warmpath over nginx","value":1.4,"unit":"ratio","target":1.6,"ok":true}
//
// # What is measured
//
// One worker process that answers at once (package wire) stands behind all proxies. The daemon serves as configured
// by default: prefixaware, prompts hashed and learnt, metrics on, explain on. Every prompt is new, so each request
// pays for entering the index, save for the growing chats, whose turns find their prefix. CPU is what the kernel says
// that the proxy's threads ran; the load generator's and the worker's do not count. The machine is taken to be noisy:
// the proxies take turns within each round, a ratio is made of neighbours in a round, and the median of the rounds
// counts. Latency is told over the same load sent straight to the worker, in the same round. Memory is that of fresh
// processes.
//
// A missed target is told by "ok":false alone, since machines differ. A figure that could not be measured (no nginx
// on this machine) is a line with "missing":true, and the exit status is 1.
//
// # Where the daemon's time goes
//
// A chat of 1 KB with a short answer costs 2.8 times the CPU of nginx beside it (2026-09, two busy shared cores). A
// third of that is the kernel: two writes and four reads. The rest is spread thin: no part of the code has more than
// a fourteenth. What paid, each measured with old and new binary taking turns: a context that is part of the request
// (exchange.Life), 12 %; no fiber, no unread debug line and one allocation for a first attempt, 7 %; kept series in
// place of label look-ups (operator), 4 %. Left alone: GOGC, as there is hardly any collection, and the look at a
// pooled connection that is young: a worker that half-closes it would be waited for until header_timeout.
package main
