// Attacks replays every known way to break a running daemon from outside, and prints one line a way:
//
//	testdata/run trials/attacks                 # builds the daemon first; -bin bin/warmpath, -run REGEXP
//	ok      door/descriptors   200 idle connections at ulimit -n 64: alive, admin answered 6 of 6, ...
//	BROKEN  keys/two-names     a worker got the model that the key may not use: 200 {"served_model":"secret"...
//
// The exit status is 1 if a way is BROKEN. A way that could not be tried is BROKEN, too.
//
// Each file is a topic: what comes in at the door, its TLS, keys and their models, the sandbox, sessions and their
// store, workers that misbehave, configuration files, memory. The daemon is the real binary with its defaults where
// that is possible. Workers are raw sockets of this process, so that they can send what no HTTP library sends. A
// topic that found its daemon dead or its log telling of a panic has one more line, which is BROKEN.
//
// All loads are bounded, all addresses are on loopback, and what was started is stopped. Figures of time are printed; a
// way is judged by one only where the attack is on time, with a control in the same run. What a strategy does to
// another pool's p99 is printed with an interval: one round, the default, shows gross harm alone, -rounds 10 and more
// on a machine that does nothing else show whether it is within 10 %.
package main
