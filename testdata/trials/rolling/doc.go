// Rolling replaces eight simulated workers one by one, while agents use them through a router, and prints what the
// clients saw before and during that:
//
//	testdata/run trials/rolling -bin bin/warmpath    # four minutes; -seed 2
//	{"mode":"hand-over","before":{"requests":...,"hit_rate":...,"ttft_p50":...,"ttft_p90":...},"during":{...},
//	 "p90_grows":1.06,"moved_tokens":...,"unused_share":0.1}
//
// Three fleets, each with a router of its own, play at the same time. In one nobody replaces a worker (still); in the
// others each worker is drained by `warmpath drain`, ended when it is idle, started again with an empty cache, and put
// back by `warmpath undrain`: with --hand-over --within 13s (hand-over) and without (drain).
//
// The exit status is 1 if with a hand-over P90 of TTFT grows to more than 1.1 of before, the hit rate falls by more
// than two points, more than a fifth of the moved tokens are unused, or a request failed in any fleet. Where P90 grows
// in the fleet that is left alone too, because the machine is busy or sessions have grown, 1.1 of that is allowed.
//
// # The load
//
// It is the lab's scenario rolling, without the sessions' names, from its third minute on: sessions that have begun
// before go on with the turn that is next then. The workers are twice as fast as there, as all is over in a third of
// the time. What the clients see of the first 30 s, in which the caches fill, does not count.
package main
