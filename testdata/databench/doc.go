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
// With front's lane, one run each while nothing else ran, beside an nginx of 11 us at 1 KB: 2.5 at 1 KB, 2.4 at 32 KB,
// 1.6 at 256 KB, 2.4 for chats; 1.8 at 500 requests a second and 1.6 at 1,500; p50 nginx's and 41 us, and 10; 1.7 a
// chunk of the 50 streams, counted while they flow. What it was before counts their beginning too.
//
// The medians of three runs on a quiet machine, beside an nginx of 15 us at 1 KB (mark; 2026-11): 1.64 at 1 KB (1.9),
// 1.84 at 32 KB (2), 1.37 at 256 KB (2), 1.69 for chats (2.2), .95 a chunk flat out (1), 1.50 a paced one (1.1); 1.71
// at 500 requests a second (1.6) and 1.51 at 1,500 (1.9); p50 nginx's and 24 us, and 13; 9,000 streams in 237 MB (270).
//
// With GOMAXPROCS=1 a request at 500 a second takes .99 of the CPU and a paced chunk .88, in turns: what the scheduler
// spends on waking a second thread. A router that goes down to one processor in a calm was written and lost: whatever
// takes milliseconds would stand before requests then. One run of each beside nginx had promised .75 and .6.
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
// "-beside" what each costs by another build over this one. Rings fill first, unmeasured, and logs are emptied between
// turns: memory that nobody had touched no machine pays for long. Over many runs (2026-11): the ring of decisions 1.03
// to 1.13, mostly 1.06 to 1.08; spans of all 1.15 to 1.27, of 1 in 100 1.01 to 1.07; the access log 1.08 to 1.13, and
// 1.10 to 1.18 times that with the candidates of four workers, 1.22 with spans of all beside (1.34 before they were
// written once for both). Two processes of one build that do the same differ by .99 to 1.02 in such a run, so that a
// run tells no difference below 2 %. The marks of 1.03 and 1.1 are not held.
//
// By perf, which noise touches less, of a request of 34 to 38 us: the ring 1.2 to 1.35 us, 3.3 to 3.8 in 100 (packing
// the rows .25, texts .1, copies .2 to .35, the lock and what two cores pass to each other .25); a span's beginning .3,
// its encoding 1, its sending .6; a line .9 and its writing .2; its candidates and frame 1.3, of which .25 is base64,
// and their writing .35; the runtime's monitor .7 without a log, 1 with one, 1.2 with candidates.
//
// What paid: records as one piece of memory, candidates listed without a look at all workers, spans and lines written
// field by field, lines in one write while many wait: the ring from 1.11, spans of all from 1.59, of 1 in 100 from
// 1.11, lines from 1.40 and 1.48. Lines of 256 KiB at once are .97 of those of 64, as each write has the runtime's
// monitor look, and switch, for a millisecond. No list of 2 KB on the stack, cleared for each request, where its choice
// is kept: by perf up to .3 in 100 of a request.
//
// What did not: with GOMAXPROCS=1, and with a ring of 300 KB that stays in the cache, the ring costs as much: neither
// the lock nor the memory is most of it. Rows copied as they are, without packing; no lock when a request is decided;
// no texts: none of them is seen over the noise (1.07 to 1.11 each, in one run in which the ring was 1.07). The
// 256 KiB in writes of 16: the monitor .4 in 100 less, the writes .5 more, the log 1.04. Candidates put into words when
// they are decided, with no list of them in between: .3 in 100 of a request by perf.
//
// The module was a sixth of a request with 256 idle workers: each near tie cost it .1 us. A pick among them took 32 us
// and takes 12.5 now, at 16 workers 3.2 and 2.5 (testdata/benchjson, BenchmarkPick/idle, in turns); a request with 256
// workers .85 of what it was (three runs in turns: .75, .95, .85). With all rows priced in one call: a pick in a loaded
// fleet of 256 from 8.6 to 5.9 us, of 16 from .87 to .79, in an idle one from 11.7 to 8.5 and from 2.3 to 2.1.
//
// A connection that waits for its client held 22.8 KB, and holds 8.1 since room listen parks it, 6.5 to 7.0 with a lane
// (memory/idle-connection; nginx .5). Half of that is garbage of the wait and of the requests before it: live are 4.0,
// and 1.8 since no goroutine waits after half a minute. An open stream
// holds 4.8 KB of stack and goroutine and 12 of heap, of which the largest part, the exchange, is 2.7. An exchange that
// fits the allocator's next smaller size, a decision kept without the memory in which it was written, and contexts that
// are let go: 1.6 KB less.
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
