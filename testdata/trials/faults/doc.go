// Faults breaks what is around a running daemon and prints one JSON line a check:
//
//	testdata/run trials/faults -bin bin/warmpath   # -quick: under 2 minutes and no nginx; -run REGEXP; -soak 3m
//	{"fault":"kill -9 of one of 4 workers","figure":"lost 0 of 50; ...","pass":"...","ok":true}
//
// The exit status is 1 if a check failed. Lines with "peer" show what nginx or haproxy did on the same fault; they
// never fail the run.
//
// Workers are package wire's: in this process where a fault can be played, processes of their own where a signal is
// the fault. Both sides of the daemon are raw sockets, so that no HTTP library repairs or hides what is looked for.
// Each request carries a mark that its answer repeats in every event: bytes of another's answer are seen.
//
// Beside its own mark, every check wants: the daemon is alive and logged no panic, no upstream request without
// exactly one length, and within half a minute goroutines, descriptors and requests in flight back at what they were
// before the fault.
//
// Marks in milliseconds hold on a busy machine, too: it stops any process for some milliseconds now and then, so such
// a check has a control beside it, a daemon that nobody attacks or a relay that does nothing else, in turn with what
// is judged. A check that is missed by a little measures more and judges all of it; nothing that was measured is
// thrown away.
package main
