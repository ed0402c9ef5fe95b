// Databench measures what the daemon costs as a proxy, beside nginx, haproxy and Go's ReverseProxy in the same run, and
// prints one JSON line a figure with its target, in the form of testdata/benchjson:
//
//	go run ./testdata/databench -bin bin/warmpath        # about 3 minutes; -quick: 30 s
//	{"name":"cpu/1KB/warmpath over nginx","value":1.4,"unit":"ratio","target":1.9,"ok":true}
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
// A third of a request of 1 KB is the kernel: two writes and four reads. The rest is spread thin: no part of the code
// has more than a fourteenth. What paid, each measured with old and new build taking turns (ratios of the CPU of a
// request, on shared and busy cores; chunk is that of a stream that flows as fast as it can):
//
//	                                                            1 KB   32 KB  256 KB  chats  chunk
//	a context that is part of the request (exchange.Life)        .88
//	no fiber, no unread debug line, one allocation an attempt    .93
//	kept series in place of label look-ups (operator)            .96
//	the end of events looked for from line to line (exchange)                                  .70
//	system calls unannounced to the scheduler (room socket)      .79-.87  .87     .92    .87    .92
//	five allocations less, fewer looks at header fields          .94      .98    1.02   1.00
//	requests of the plainest form without fasthttp (front)       .88      .86            .89    1.01
//
// A full index takes a new prompt into the memory of the one that it evicts: .995 and 1.00 (1 KB, chats), and 6.1
// allocations a request in place of 10.1. The system calls unannounced to the scheduler also bring the voluntary
// context switches of a request from 0.4 down to 0.1 (cpu/1KB-switches). The last three rows together: .93, .91, .96,
// .91 and .59 in one run, the ring of the last requests' decisions, which came meanwhile, included (3 % of a small
// request).
//
// Beside nginx, one run each on a machine with twenty times as many runnable threads as cores (2026-11): 2.7 and 3.3 at
// 1 KB, 2.3 and 2.5 at 32 KB, 1.9 and 1.7 at 256 KB, 3.6 and 2.8 for chats, 1.3 and 1.4 a chunk. Only 256 KB keeps its
// mark there. On the same machine while nothing else was measured, one run (mark): 2.0 at 1 KB (1.9), 2.1 at 32 KB (2),
// 1.7 at 256 KB (2), 2.6 for chats (2.2), 1.1 and 1.2 a chunk flat out (1); 2.0 at 500 requests a second (1.6), 2.1 at
// 1,500 (1.9); p50 nginx's and 60 us at 500 a second (60), and 51 at 1,500 (80); 2.2 a chunk of 50 streams of 50 events
// a second (1.1). Of such a chunk, by perf, 37 in 100 are the scheduler's, which has threads sleep and wakes them for
// each (14 in futex, 16 in netpoll), 25 the write, 10 the read, 5 the runtime's monitor, and 7 ours.
//
// Of a request of 1 KB, by perf (cpu-clock, callees included), in 100: the kernel's writes 20 and reads 6, of which 1.7
// look at a pooled connection; waits and the scheduler 9; prefix 11, of which Reuse 4.5; prompt 4; decisions
// 3.5; metrics 3; the strategy's pick 1.6; fasthttp itself 6; the looks at the clock 3. So it was before a loop of our
// own, front's lane, stood before fasthttp: of that and of a second parse only the loop's own parse is left.
//
// "-run growth" prints the CPU of a request by workers, pools and connections, of the daemon alone: the table is in
// daemon/doc.go. With 256 workers a third is the choice: their rows 10 %, matches and caches 6, the module 8, the
// record 6; the rest has grown too, by memory that is in no cache. An exchange used again and a node that holds its
// holder: .93 at 1 KB and for chats, in one short run.
//
// "-run telling" prints what telling costs a request of 1 KB, each over the one without it, in turns, and with
// "-beside" what each costs by another build over this one (2026-11): the ring of decisions 1.06 to 1.08, of which a
// third waits for memory that is in no cache; spans of all 1.15 and 1.20, of 1 in 100 1.03 and 1.04; the access log
// 1.14 and 1.20, and 1.20 times that with the candidates of four workers in each line. Before the ring was one piece of
// memory: 1.11; before candidates were listed without a look at all workers: 1.29. Before spans and lines were written
// field by field, and lines in one write while many wait: 1.59, 1.11; 1.40, 1.48.
//
// The same again, on a machine that others keep busy, where a round's noise is as large as what is measured: the ring
// 1.03, 1.04, 1.07, 1.10 and 1.13; spans of all 1.15 to 1.27, of 1 in 100 1.01 to 1.07; the access log 1.09 to 1.13,
// and 1.14 and 1.18 times that with the candidates. By perf, which noise touches less, before and after, in 100 of a
// request: the ring 3.8 and 4.0, of which .4 was an allocation that is gone since, and .98 beside the build before
// (cpu/1KB, 42 rounds in turns); a span's beginning 1.4 and .6, its encoding 3.2 and 2.1; the writing of lines 6.2 and
// 1.9, with candidates 9.5 and 3.9, since lines wait for each other up to 100 ms. The marks of 1.03 and 1.1 are not
// held.
//
// A part of these no machine pays for long: memory that nobody had touched, for records in a ring that was not yet full
// and for lines in a file that only grew (1.5 ns a byte written where the machine's host finds that memory first, .2
// else). So the rings fill first now, unmeasured, and logs are emptied between turns. Lines go out 256 KiB at once, in
// place of 32: each write had the runtime's monitor look, and switch, for a millisecond. One run since, 24 rounds: the
// ring 1.06, spans of all 1.17, of 1 in 100 1.04, the access log 1.08, 1.15 times that with candidates, 1.38 with
// candidates and spans. Beside the build before, in turns: the log .97, with candidates .94, which are 1.12 of the
// plain log then; lines of 64 KiB at once 1.03 of those of 256. By perf, in us of a request of 33 to 38: the ring 1.25
// (its choice coded .3, its end .15, its copies to memory that is in no cache .2, the lock and what two cores pass to
// each other .25); a span's beginning .3, its encoding 1, its sending .6; a line 1.0 and its writing .4; its candidates
// 1.4 (the list .3, its words .6, the frame .6, half of it base64) and their writing .7; the monitor .8 without a log,
// 1.2 and 1.7 with one.
//
// The module was a sixth of a request with 256 idle workers: each near tie cost it .1 us. A pick among them took 32 us
// and takes 12.5 now, at 16 workers 3.2 and 2.5 (testdata/benchjson, BenchmarkPick/idle, in turns); a request with 256
// workers .85 of what it was (three runs in turns: .75, .95, .85). With all rows priced in one call: a pick in a loaded
// fleet of 256 from 8.6 to 5.9 us, of 16 from .87 to .79, in an idle one from 11.7 to 8.5 and from 2.3 to 2.1.
//
// A connection that waits for its client held 22.8 KB, and holds 8.1 since room listen parks it. Without a goroutine it
// would be 3.9: room listen says why not (memory/idle-connection, medians of six in turns; nginx .4). An open stream
// holds 4 KB of stack and 10 of heap, of which the largest part, the exchange, is 2.3; the rest is what the collector
// lets grow.
//
// A line's fields that are stored once each, with their names: .91 of the time of four candidates. In one run of 24
// rounds beside nginx the first 8 took 33 us a request of 1 KB and the others 29: by perf, 6 in 100 of a young process
// are pages that it touches first, which the ring and the heap do some 80,000 requests long. Small answers that were
// read into the memory of an exchange that has ended, and copied: .99 and 1.03 at 1 KB, 1.02 at 32 KB, .98 for chats:
// given up.
//
// Left alone: a build by a profile (-pgo, of these loads, 10,600 samples): 1.02, 1.01 and .99 at 1 KB, .99, .99 and
// .97 for chats, .98 at 32 KB, .95 and 1.07 a chunk, for a second compilation of all packages beside that of the
// tests; GOGC, as there is hardly any collection (with 400, and stacks that never shrink, p50 at 500 requests a second
// .98); the look at a pooled connection that is young: a worker that half-closes it would be waited for until
// header_timeout; one touch of a prompt's blocks in place of two, 1.5 %: the second at the end puts them where the
// worker's own LRU has them; a sample of the requests for prefix.Reuse, 3 %: the gaps between the blocks' uses would
// be those of the sample; such a sample by the blocks' hashes, which keeps the gaps: a small prompt would be one run
// all the same, touched as often; stacks that the collector shrinks and that grow again: under 2 % at 500 requests a
// second and at full load; the read that finds nothing before a connection waits, 1 % on each side: without it a
// pipelined request could be waited for for ever; what the scheduler does at 1,500 requests a second: 3.8 looks at
// epoll, .4 at a futex and 3.1 context switches a request, all of them its own.
package main
