// Package kvstore keeps large values, the KV blocks of workers, in one arena of memory. A value has a few bytes
// (LMCache's metadata) to 128 MiB. cache/tier keeps the router's own small values; it copies each twice and holds all
// on Go's heap, which 100 MB values would make the collector walk and the process double.
//
// # What may a caller rely on?
//
//   - A value is written once, into its place: Reserve takes room, the caller fills it, Commit shows it. A reader gets
//     a Lease on the bytes in place. So there is one copy in, from the socket, and none out.
//   - What is leased stays, even when its key is replaced, deleted, evicted or expires: its room is free at the last
//     Release. What Exists promised to a client stays for the time of the promise, or until that client has read it.
//     Eviction goes around both. Only a deletion ends a promise sooner; a put under the same key takes it over.
//   - What Exists promised of the disk comes, though memory is full of other promises: its reader gets it in memory
//     of its own, four times Config.MaxValue in all, or waits for that up to 10 s (TestPromiseOnDiskIsKept). A promise
//     that is broken all the same is counted: Stats.Broken.
//   - What Promise found far away is on its way to memory when it returns, and then stays like the rest (load.go).
//   - No value is ever seen half written, and no reader ever sees another key's bytes (TestTorture).
//   - Config.MaxBytes bounds all of it: keys and records have a part of their own. What does not fit, since all that is
//     left is leased or promised, is refused with ErrFull at Reserve, before a byte of it is read.
//   - Values that clients have announced and are still sending have half of the memory at most, one alone excepted:
//     Reserve waits for the others up to 2 s (TestAnnouncedValues).
//   - Exists, and Get of what is in memory, never wait for anything but a lock of microseconds.
//
// # What is behind the memory?
//
// One Backing or two: Config.Disk on this machine, then Config.Far, servers that many daemons share. Each is given
// every value, asked for what those before it have not, by one reader of many who want the same key, and told of
// deletions. The store is the first tier whatever they are. A value that a Backing has in its keeping may pass through
// memory only: it goes with its last reader and promise. A disk that did not take a value when it was put is offered
// it again before memory evicts it; up to eight victims are passed over for that. A View that ends Here never
// asks Config.Far.
//
// # Why one lock?
//
// Under it are a map, a list and a bitmap: half a microsecond for values whose copy takes a hundred. Bounds and
// evictions are exact under one lock and guesses under sixteen.
//
// # How the files lie
//
// store and view are what is called; lease and its filling are what they hand out; load asks backing for what is not
// there, and for what was promised. All work on memory, the index of entries; list tells the keys in order.
// Below stand the rooms arena (the bytes, and what is free of them), evict (who goes next) and catalog (the keys in
// order). chunks reads from what is put how many tokens the room is.
package kvstore
