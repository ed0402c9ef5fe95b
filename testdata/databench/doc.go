// Databench measures what the daemon costs as a proxy, beside nginx, haproxy and Go's ReverseProxy in the same run. It
// prints one JSON line a figure with its target, in the form of testdata/benchjson:
//
//	go run ./testdata/databench -bin bin/warmpath        # about 3 minutes; -quick: 30 s
//	{"name":"cpu/1KB/warmpath over nginx","value":1.4,"unit":"ratio","target":1.9,"ok":true}
//
// # What is measured
//
// One worker process that answers at once (package wire) stands behind all proxies. The daemon serves as configured
// by default: prefixaware, prompts hashed and learnt, metrics on, explain on. Every prompt is new, so each request pays
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
// # The latest figures
//
// All of 2026-11. A ratio is the daemon's CPU over nginx's. The latest are three runs on a quiet machine. Before them
// come three on one whose speed changed between them, then the medians of three on another, and one run of each figure
// while nothing else ran. The last is from before front had a server of its own beside fasthttp ("the lane"), quiet.
// All others are with it. It is gone since: a request of 1 KB costs 1.11 to 1.13 of what it did.
//
//	                                      mark  the latest      before          medians  one   before the lane
//	nginx itself at 1 KB                        18 20 20        18 19 21 us     15 us    11 us
//	1 KB                                  1.9   1.83 1.86 1.86  1.82 1.93 2.28  1.64     2.5   2.0
//	32 KB                                 2     1.96 1.99 2.38  1.85 1.92 2.01  1.84     2.4   2.1
//	256 KB                                2     1.46 1.61 1.62  1.03 1.22 1.42  1.37     1.6   1.7
//	chats                                 2.2   1.81 1.96 1.99  1.84 1.84 1.90  1.69     2.4   2.6
//	500 requests/s                        1.6   1.74 1.84 1.96  1.75 1.85 1.88  1.71     1.8   2.0
//	1,500 requests/s                      1.9   1.46 1.69 1.77  1.75 1.78 1.80  1.51     1.6   2.1
//	a chunk, flat out                     1     .77 .84 1.01    .78 .83 .87     .95            1.1, 1.2
//	a paced chunk                         1.1   1.31 1.41 1.63  1.36 1.40 1.58  1.50     1.7   2.2
//	p50 beyond nginx's, us, 500 a second  60    54 58 88        38 55 86        24       41    60
//	the same, 1,500 a second              80    8 34 49         46 70 73        13       10    51
//	9,000 streams, MB                     270   187 188 188     184 185 186     237
//	an open stream of 1,000, KB           12    16.8 16.8 16.8  15.5 16.7 17.1
//	an open stream of 9,000, KB           12    14.6 14.6 14.6  14.7
//	an idle connection, KB                4     4.7 5.5 5.6     3.1 6.6 6.9
//
// An idle connection holds 3.1 KB if the garbage has been collected since the last requests, as it was in one of the
// three runs before. The collector comes by itself within two minutes.
//
// A paced chunk is one of 50 streams of 50 events a second. It is counted while the streams flow; before the lane their
// beginning counted too.
//
// "-run telling" prints what the ring of decisions, spans and the access log cost a request of 1 KB. Each figure is the
// ratio to a request without it; the last two are the ratio to one with the access log. The marks of 1.03 and 1.1 are
// not kept:
//
//	                                           mark   many runs
//	the ring of decisions                      1.03   1.03 to 1.16, mostly 1.06 to 1.08
//	spans of all requests                      1.03   1.69 in one run (1.15 to 1.27 while written by hand)
//	spans of 1 in 100, written by hand         1.03   1.01 to 1.14
//	the access log                                    1.07 to 1.13
//	  with the candidates of four workers      1.1    1.09 to 1.18
//	  with these and spans of all              1.1    1.59 in one run (1.18, 1.22 while written by hand)
//
// These runs take turns, and with "-beside" they give what each costs by another build over this one. Rings fill first,
// unmeasured, and logs are emptied between turns: no machine pays for long for memory that nobody had touched. Two
// processes of one build that do the same differ by .99 to 1.02 in such a run, so a run shows no difference below 2 %.
//
// "-run growth" prints the CPU of a request by workers, pools and connections, of the daemon alone: the table is in
// daemon/doc.go.
//
// # Where the time and the memory go
//
// A third of a request of 1 KB is the kernel: two writes and four reads. The rest is spread thin: no part of the code
// has more than a fourteenth. By perf (cpu-clock, callees included), in 100 of a request, before front's lane:
//
//	the kernel's writes                 20
//	the kernel's reads                  6, of which 1.7 look at a pooled connection
//	waits and the scheduler             9
//	prefix                              11, of which Reuse 4.5
//	fasthttp itself                     6
//	prompt                              4
//	decisions                           3.5
//	metrics                             3
//	the looks at the clock              3
//	the strategy's pick                 1.6
//
// In one run of 24 rounds beside nginx the first 8 took 33 us a request of 1 KB and the others 29: by perf, 6 in
// 100 of a young process are pages that it touches first, which the ring and the heap do some 80,000 requests long.
//
// Of a paced chunk before the lane, by perf, in 100: 37 are the scheduler's, which has threads sleep and wakes them for
// each (14 in futex, 16 in netpoll), 25 the write, 10 the read, 5 the runtime's monitor, and 7 ours.
//
// With 256 workers a third of a request is the choice: their rows 10 %, matches and caches 6, the module 8, the record
// 6. The rest has grown too, by memory that is in no cache.
//
// By perf, which noise touches less, of a request of 34 to 38 us:
//
//	the ring                  1.2 to 1.35 us, 3.3 to 3.8 in 100: packing the rows .25, texts .1, copies .2 to .35, the
//	                          lock and what two cores pass to each other .25
//	a span                    its beginning .3, its encoding 1, its sending .6
//	a line of the access log  .9, its writing .2
//	  its candidates, frame   1.3, of which .25 is base64; their writing .35
//	the runtime's monitor     .7 without a log, 1 with one, 1.2 with candidates
//
// A connection that waits for its client holds 8.1 KB, 6.5 to 7.0 with the lane (memory/idle-connection; nginx .5).
// Half of that is garbage of the wait and of the requests before it: live are 4.0, and 1.8 since no goroutine waits
// after half a minute.
//
// Of 9,000 open streams each takes 14.7 KB (19.3 before they gave back what only their beginning needs). Live are 13.3:
// 4.6 of stack and goroutine, 1.1 that Go's poller has for two descriptors, and 7.3 of heap, of which the largest parts
// are the exchange (1.8), the visit (1.0), the reply (.7) and the decision (.5).
//
// # What paid
//
// Each was measured with old and new build taking turns. The table has the ratios of the CPU of a request, on shared
// and busy cores; chunk is that of a stream that flows as fast as it can:
//
//	                                                            1 KB   32 KB  256 KB  chats  chunk
//	a context that is part of the request (exchange.Life)        .88
//	no fiber, no unread debug line, one allocation an attempt    .93
//	kept series in place of label look-ups (operator)            .96
//	the end of events looked for from line to line (exchange)                                  .70
//	system calls unannounced to the scheduler (room socket)      .79-.87  .87     .92    .87    .92
//	five allocations less, fewer looks at header fields          .94      .98    1.02   1.00
//	requests of the plainest form without fasthttp (gone since)  .88      .86            .89    1.01
//	a full index takes a new prompt into an evicted one's memory .995                   1.00
//	an exchange used again, a node that holds its holder         .93                     .93
//	a watched file is read again only once it has changed        .99
//
// The last row is .945 at 500 requests a second: an idle daemon with one worker takes 3.1 ms of CPU a second for 4.5,
// and 3.0 for 17 if two modules of 1.9 MB are watched. Most of what is left is the scheduler's, for some ten wake-ups a
// second and the worker's /metrics and /health.
//
// The rows from the end of events to the five allocations together: .93, .91, .96, .91 and .59 in one run. That
// includes the ring of the last requests' decisions, which came meanwhile (3 % of a small request).
//
// The memory of evicted prompts also brings 6.1 allocations a request in place of 10.1. An exchange used again was
// measured in one short run. The system calls unannounced to the scheduler also bring the voluntary context switches of
// a request from 0.4 down to 0.1 (cpu/1KB-switches).
//
// For records, spans and the access log:
//
//   - Records as one piece of memory, and candidates listed without a look at all workers: the ring from 1.11.
//   - Spans and lines written field by field, lines in one write while many wait: spans of all from 1.59, of 1 in 100
//     from 1.11, lines from 1.40, and those with candidates from 1.48.
//   - Lines of 256 KiB at once are .97 of those of 64, as each write has the runtime's monitor look, and switch, for a
//     millisecond.
//   - No list of 2 KB on the stack, cleared for each request, where its choice is kept: by perf up to .3 in 100 of a
//     request.
//   - A line's fields that are stored once each, with their names: .91 of the time of four candidates.
//
// For the choice among many workers, the time of a pick (testdata/benchjson, BenchmarkPick/idle, in turns). The module
// was a sixth of a request with 256 idle workers: each near tie cost it .1 us.
//
//	                                             256 workers         16 workers
//	near ties passed over, idle fleet            32 to 12.5 us       3.2 to 2.5 us
//	all rows priced in one call, idle fleet      11.7 to 8.5 us      2.3 to 2.1 us
//	the same in a loaded fleet                   8.6 to 5.9 us       .87 to .79 us
//
// A request with 256 workers is .85 of what it was by the first row (three runs in turns: .75, .95, .85).
//
// For memory: a connection that waits for its client held 22.8 KB before room listen parked it. An exchange that fits
// the allocator's next smaller size, a decision kept without the memory in which it was written, and contexts that are
// let go: 1.6 KB less an open stream. Then 4.5 KB less: no buffer while it waits 1.2, the parser's places .9 (and 88
// bytes a message), what was asked and the order of the workers .5, header fields and the request to the worker .6, the
// reply's places .4; the rest was garbage of its beginning.
//
// # What did not, and was left
//
//   - One processor in a calm. With GOMAXPROCS=1 a request at 500 a second takes .99 of the CPU and a paced chunk .88,
//     in turns: what the scheduler spends on waking a second thread. A router that goes down to one processor in a calm
//     was written and lost: whatever takes milliseconds would stand before requests then. One run of each beside nginx
//     had promised .75 and .6.
//   - Huge pages for the program's text, from a tmpfs with huge=always: 118 us a request at 500 a second for 122, in
//     three turns that differ by 20.
//   - Huge pages for the Go heap, by MADV_COLLAPSE where all of one was in memory (76 of 135 MB): .98 and 1.01 at
//     1 KB, .95 and .99 at 32 KB, .98 and 1.00 for chats, .98 and .95 at 500 requests a second. By MADV_HUGEPAGE, which
//     takes more memory, .93 to .98, and 1.01 at 32 KB.
//   - The ring: with GOMAXPROCS=1, and with a ring of 300 KB that stays in the cache, it costs as much: neither the
//     lock nor the memory is most of it. Rows copied as they are, without packing; no lock when a request is decided;
//     no texts: none of them is seen over the noise (1.07 to 1.11 each, in one run in which the ring was 1.07).
//   - The 256 KiB of lines in writes of 16: the monitor .4 in 100 less, the writes .5 more, the log 1.04.
//   - Candidates put into words when they are decided, with no list of them in between: .3 in 100 of a request by perf.
//   - Small answers that were read into the memory of an exchange that has ended, and copied: .99 and 1.03 at 1 KB,
//     1.02 at 32 KB, .98 for chats: given up.
//   - A build by a profile (-pgo, of these loads, 10,600 samples): 1.02, 1.01 and .99 at 1 KB, .99, .99 and .97 for
//     chats, .98 at 32 KB, .95 and 1.07 a chunk, for a second compilation of all packages beside that of the tests.
//   - GOGC, as there is hardly any collection (with 400, and stacks that never shrink, p50 at 500 requests a second
//     .98). Stacks that the collector shrinks and that grow again: under 2 % at 500 requests a second and at full load.
//   - The look at a pooled connection that is young: without it the router would wait until header_timeout for a worker
//     that half-closes the connection.
//   - One touch of a prompt's blocks in place of two, 1.5 %: the second at the end puts them where the worker's own LRU
//     has them.
//   - A sample of the requests for prefix.Reuse, 3 %: the gaps between the blocks' uses would be those of the sample. A
//     sample by the blocks' hashes keeps the gaps, but a small prompt would be one run all the same, touched as often.
//   - The read that finds nothing before a connection waits, 1 % on each side: without it a pipelined request could be
//     waited for for ever.
//   - What the scheduler does at 1,500 requests a second: 3.8 looks at epoll, .4 at a futex and 3.1 context switches a
//     request, all of them its own.
package main
