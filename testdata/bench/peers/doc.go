// Command peers measures what several routers that share their history lose against one router.
//
//	testdata/run bench/peers -bin bin/warmpath                        # tenants, overload and bursts
//	testdata/run bench/peers -bin bin/warmpath -trace FILE -limit 6000 -spread 3s -speed 2 -workers 16 -kv 2000000
//	testdata/run bench/peers -bin bin/warmpath -fault kill            # a router is killed and started
//	testdata/run bench/peers -bin bin/warmpath -fault state           # a single router is started anew
//	testdata/run bench/peers -bin bin/warmpath -fault redis           # Redis is stopped for 30 s
//	testdata/run bench/peers -bin bin/warmpath -cost                  # CPU, writes and bytes a request
//	testdata/run bench/peers -bin NEW -beside OLD -cost -routers 3    # two builds that take turns
//
// It starts simulated workers, a redis-server and the routers as processes of their own. Each request goes to a router
// at random. Times are the workers' own: wall time multiplied by -speed. One JSON line a run.
package main
