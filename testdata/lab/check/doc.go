// Command check compares the lab's model with the daemon itself. It sends the same chats over HTTP to a daemon with
// simulated workers, in real time, and runs them in the lab in virtual time. It prints hit rate and TTFT of both, one
// JSON line a strategy, and fails if the hit rates are more than a point apart, or the median TTFTs more than a tenth.
// It sends several loads, each to a daemon of its own: in real time it is chance which of two turns comes first, and of
// a single load of 120 requests the hit rates were 1.4 points apart, in either direction. So the lab runs each load
// many times, with steps that take a little longer each time.
//
//	testdata/run lab/check
//
// It takes four minutes and wants an idle machine: the daemon's side is measured by the clock.
//
// With -load agents the chats are sessions of agents, with subagents. The hit rates may be two points apart, and the
// order of the strategies by their mean TTFT is compared.
//
//	testdata/run lab/check -load agents -strategies prefixaware,kvaware,session,roundrobin -seeds 3
//
// With -load gallery the strategies are six of docs/strategies, as modules, with the labels, costs and headers that
// they look for. The hit rates may be two points apart, the mean TTFTs 15 %, and both sides must order the strategies
// alike.
//
//	testdata/run lab/check -load gallery -seeds 3
//
// With -tiers it plays scenarios with a CPU tier to three daemons over HTTP: prefixaware with the tiers configured,
// prefixaware with one cache as large as the CPU tier configured, and round robin, one JSON line a scenario. It fails
// if the first is more than 5 % slower than the second, in mean or P90 of TTFT, or not better than the third. conv+cpu
// takes its -trace.
//
//	testdata/run lab/check -tiers G,L,syn+cpu
//
// With -queues it plays scenarios of a queue in real time to a daemon with the queue, the first class alone to another
// one, and for half of the time to a third one without the queue, each with the scenario's workers, and prints what the
// clients of each key saw. It judges nothing.
//
//	testdata/run lab/check -queues flood,neighbour,keys
//
// With -adapters it sends 2,000 requests over HTTP for 200 LoRA adapters, by Zipf's law, to eight workers with eight
// places each, under prefixaware, rendezvous hashing and round robin, and prints the loads for each thousand requests
// and the TTFT. With -demand the daemon loads the adapters.
//
//	testdata/run lab/check -adapters -demand
//
// With -syncs a trainer gives eight workers new weights a hundred times, through the router, while agents use them:
// once for each mode of a pause, and once without updates (still). It prints how many turns failed, how many requests
// the workers served from blocks of other weights, how many answers had the label of others, and the hit rate. Mode
// keep, here with clear_cache=false, serves such blocks by intent; keep-reset empties the caches, as vLLM does by
// default. Of the modes abort and wait the hit rate has no mark: they empty the caches each time.
//
//	testdata/run lab/check -syncs still,abort,wait,keep,keep-reset -speed 6
package main
