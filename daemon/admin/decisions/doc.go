// Package decisions keeps the last requests of this process, so that each can be explained afterwards by its id.
//
// A [Ring] takes a decision when it is made ([Ring.Decided]), so that a stream that runs for minutes is seen while it
// runs, and its end when it has ended ([Ring.Ended]). Those that have ended stand as packed bytes, one behind the
// other, in one circle of memory, and the oldest make room. What is kept is plain values: ids, counts and times, never
// a prompt, an answer, a header field or a key. Of a client's own words (id, model, path) it keeps gate.MaxText bytes,
// as copies: a slice of a header field would keep the whole header alive, and the secret in it.
//
// # Cost
//
// Every request pays for it, so nothing is put into words before somebody asks: a choice is kept as a route.Sketch, its
// rows as they are, each by its difference from the row before. A request with 4 workers pays 3.5 in 100 of its CPU
// (perf; 6 beside a router without a ring, testdata/databench), half of it for packing, and some 700 bytes. Records
// that have ended stand in a small memory first, since one that is written into the circle by itself waits for memory
// that is in no cache. BenchmarkRing and route.BenchmarkSketch measure that cost.
//
// # Who looks
//
// A viewer asks again and again for the changes since its last question ([Ring.Since]). So a request does nothing for
// viewers, and a slow viewer holds up nobody.
//
// # What lost
//
// A struct a request, used again: three times the bytes, spread over all memory, and 2.7 us. Channels to viewers: work
// for every request, and a policy for those that do not read. A map by id: two operations a request for a question that
// is asked a few times a day, and a client may give two requests one id; the scan of a full ring takes a few
// milliseconds, and lets requests in between. Records with their candidates in words: 3 to 45 us a request.
package decisions
