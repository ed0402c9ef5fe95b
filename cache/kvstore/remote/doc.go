// Package remote is a tier behind a kvstore.Store that many daemons share: a Redis or Valkey (one, a sentinel's, or a
// cluster), or a pool of the daemons themselves, each of which owns a part of the keys.
//
// # What may a caller rely on?
//
//   - Exists, Put and Delete never wait for a network. Get waits at most Config.Timeout for a server that is silent,
//     and not at all for a server that is marked down.
//   - A value at a server that is down is a miss. A node counts failures and sends its server a PING five times a
//     second. After three failures in a row, or one PING without an answer, it sends nothing until the server answers
//     again.
//   - Values are sent in the order of their puts, key by key, from a queue that Config.Queue bounds in bytes. A value
//     that does not fit, or that comes while the server is down, is not sent: memory still has it. With Config.Through
//     a put waits for the server.
//   - A deletion holds at once on this machine. It is sent to the servers until one confirms it.
//
// # How does Exists know?
//
// From an index of facts: what this daemon has put and got there, what others announce (news.go), and the answers to
// probes in the background, which an Exists without a fact causes. So the first Exists of a key may miss a value that
// is there: one that was put before this daemon started, while it was cut off, or a moment ago. It may also return true
// for a value that the servers have evicted since. A Get finds that out. The index of a server that was flushed, came
// back empty or was down is dropped within a second. Check finds it out too, for the keys that it gets: by the servers'
// own EXISTS, which is no use of a value for their LRU. Two halves of half a million keys each bound the index.
//
// Flush does not use the index: it makes the servers search for the keys with a prefix (TestFlush).
//
// Exists must never be wrong for a client that waits for ever. Sure is for such clients: once a second each server
// reports how many values it has evicted, and a fact from before the last eviction is not sure until a probe confirms
// it.
//
// # How is a pool divided?
//
// By go-redis's Ring: rendezvous hashing over the members that answer. A member that leaves or comes back moves its own
// share of the keys and no other. Each daemon decides for itself which members answer; while two differ, a key may be
// put at two members. So a pool is for values that never change under their key, as KV blocks do not. Nothing is
// replicated. A member's own keys stay in its store and never go over the network. Its listener recognises the others
// by their PeerName and serves them from its own memory and disk, so no request is passed on.
//
// # Why
//
// A value that is one piece of the arena is copied in neither direction; one in several pieces is copied once
// (Stats.Copied). why.md has why go-redis, and what lost.
package remote
