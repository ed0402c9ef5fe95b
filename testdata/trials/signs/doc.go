// Signs plays each sign that may speak against a worker at one of 8 engines, at half load and at full load. It counts
// what happens to good requests:
//
//	testdata/run trials/signs -bin bin/warmpath    # two minutes a sign; -seconds 15, -run REGEXP, -side 4 at a time
//	{"sign":"401","load":"half","warmpath":{"refused":0,...,"explained":0},"nginx":{...},"ok":true}
//
// The exit status is 1 if warmpath refused, failed or cut a good request that the fleet's lost capacity does not
// explain. nginx (round robin, defaults of package rig) is in front of a fleet of its own that plays the same, and a
// single engine plays it without a router, at an eighth of the load ("alone"). Neither fails the run. Without nginx in
// the PATH its part is left out.
//
// # What an engine is
//
// Four requests at a time, a second each, and a queue without a bound, as vLLM's. Half of the requests are streams. The
// fleet can do 32 answers a second; half load is 16 requests a second, full load 30. A client waits 20 s for a byte.
//
// # What is explained
//
// By the engines' own counts: an answer that the engine itself cut after its first byte; the answers that its idle
// places would have been, where all others were busy throughout and more was asked for than they can do before the last
// client's patience ends (at full load that takes some five minutes: until then queues grow and no client is refused);
// and what an engine that takes requests and is silent got before anybody could know: until the first client's patience
// ended for a hang, and for two scrapes of /metrics where the engine tells.
package main
