// Package ledger shares the limits of the clients' keys among the routers of one Redis. Ten times a second it tells
// Redis what each key has taken here, by one script for all keys, and passes on what Redis lends this router until the
// next time. No request waits for it. What is lent, and what a router does that hears nothing, is package limit's.
//
// # What stands in Redis
//
// A hash for each key, {warmpath/}limits/NAME or with the prefix as it is, has a field for each router: when it was
// written, by Redis's clock, what the router holds of each limit, and whether it wants more. A router that has written
// nothing for three seconds is gone, and its field is removed. The hash of no name counts the routers.
//
// A Redis that forgets everything, or answers with another's data, mends itself: each message has all that a router
// knows.
package ledger
