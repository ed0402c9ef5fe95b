// Package kvstore keeps large values, the KV blocks of workers, in one arena of memory. A value has a few bytes
// (LMCache's metadata) to 128 MiB. cache/tier keeps the router's own small values: it copies each twice and holds all
// on Go's heap, where the collector would walk 100 MB values and the process would double.
//
// # What may a caller rely on?
//
//   - A value is written once, into its place: Reserve takes room, the caller fills it, Commit makes it readable. A
//     reader gets a Lease on the bytes in place. So there is one copy in, from the socket, and none out.
//   - A leased value stays, even when its key is replaced, deleted, evicted or expires: its room is freed at the last
//     Release. A value that Exists promised to a client stays for the time of the promise, or until that client has
//     read it. Eviction goes around both. Only a deletion ends a promise sooner; a put of the same key takes the
//     promise over.
//   - Promises, and the leases that Hold counts, keep half of the memory, one client's half of that. Beyond it
//     Exists promises nothing, and Promise returns false (TestPromisesHoldHalf).
//   - The two keys under which LMCache keeps a chunk are promised, evicted and found as one (TestHalves).
//   - If a process truncates the segment, Touch returns an error, and all values are lost (TestTornSegment).
//   - A promised value on the disk is delivered although memory is full of other promises: its reader gets it on the
//     heap, four times Config.MaxValue in all, or waits up to 10 s for that (TestPromiseOnDiskIsKept). Stats.Broken
//     counts the promises that are broken all the same.
//   - A remote value that Promise found is on its way to memory when Promise returns, and then stays like the others
//     (load.go).
//   - No reader ever sees a half-written value, or another key's bytes (TestTorture).
//   - Config.MaxBytes bounds everything: keys and records have a part of their own. Reserve refuses a value with
//     ErrFull, before a byte of it is read, if all the values left are leased or promised.
//   - Values that clients have announced and are still sending take half of the memory at most, except a single one:
//     Reserve waits for the others up to 2 s (TestAnnouncedValues).
//   - Exists, and Get of a value in memory, only ever wait for a lock, for microseconds.
//
// # What is behind the memory?
//
// One Backing or two: Config.Disk on this machine, then Config.Far, servers that many daemons share. The store offers
// every value to each of them. For a key that the tiers before do not have, one read goes to the next one, whose result
// all readers of the key share. Each gets the deletions. The store is the first tier in any case. A value that a
// Backing has stored may only pass through memory: it leaves with its last reader and promise. If the disk refused a
// value when it was put, memory offers it again before it evicts it; up to eight victims are passed over for that. A
// View that ends Here never uses Config.Far.
package kvstore
