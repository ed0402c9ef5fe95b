// Databench measures what the daemon costs as a proxy, beside nginx, haproxy and Go's ReverseProxy in the same run. It
// prints one JSON line a figure with its target, in the form of testdata/bench/json:
//
//	testdata/run bench/data -bin bin/warmpath        # about 3 minutes; -quick: 30 s
//	{"name":"cpu/1KB/warmpath over nginx","value":1.4,"unit":"ratio","target":1.9,"ok":true}
//
// # What is measured
//
// One worker process that answers at once (package wire) is behind all proxies. The daemon serves as configured by
// default: prefixaware, prompts hashed and learnt, metrics on, explain on. Every prompt is new, so each request pays
// for entering the index; only the turns of the growing chats find their prefix.
//
//   - CPU is the kernel's count of the time that the proxy's threads ran. The load generator's and the worker's do not
//     count.
//   - Latency is measured over the same load sent straight to the worker, in the same round.
//   - Memory is that of fresh processes.
//   - The machine is taken to be noisy. The proxies take turns within each round, a ratio is made of neighbours in a
//     round, and the median of the rounds counts.
//
// A missed target only sets "ok":false, since machines differ. A figure that could not be measured (no nginx on this
// machine) is a line with "missing":true, and the exit status is 1.
//
// figures.md has the latest figures, where the time and the memory of a request go, what paid and what did not.
//
// "-run telling" prints what the ring of decisions, spans and the access log cost a request of 1 KB; with "-beside",
// what each costs in another build. "-run growth" prints the CPU of a request by workers, pools and connections, of the
// daemon alone, and "-run growth/requests", growth/strategies, growth/idle, growth/shared, growth/pools or
// growth/metrics a part.
// With "-beside" growth/strategies measures the other build too.
package main
