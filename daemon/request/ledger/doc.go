// Package ledger shares the limits of the clients' keys among the routers of one Redis. Ten times a second it reports
// to Redis what each key has used at this router, by one script for all keys. Redis returns the slice of each limit
// that this router may use until the next report. No request waits for it. Package limit decides how large a slice
// is, and what a router does without an answer.
//
// # What Redis holds
//
// A hash for each key, {warmpath/}limits/NAME or with the prefix as it is, has a field for each router: when it was
// written, by Redis's clock, what the router holds of each limit, and whether it wants more; then, in the form of this
// version, its debts and what it took in the last minute, in parts of 5 s. A router that has written nothing for three
// seconds is gone, with its requests in flight. Its field stays until what it took has left the minute and is paid, so
// that a rollout of all routers gives no key its limit anew. The hash of no name counts the routers.
//
// A Redis that loses its data, or is replaced by another one, recovers by itself: each message has everything that a
// router knows, and each router also writes what it last read of the others. Numbers that no router can have written
// are removed. Of another version's fields the numbers count that all versions write.
package ledger
