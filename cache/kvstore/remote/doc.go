// Package remote is a tier behind a kvstore.Store that many daemons share: a Redis or Valkey (one, a sentinel's, or a
// cluster), or a pool of the daemons themselves, each of which owns a part of the keys.
//
// # What may a caller rely on?
//
//   - Exists, Put and Delete never wait for a network. Get waits at most Config.Timeout for a server that is silent,
//     and not at all for one that is known to be.
//   - What is down is a miss. A node counts failures and asks its server five times a second; three failures in a row
//     or one question without an answer, and nothing is sent there until it answers again.
//   - Values go there in the order of their puts, key by key, from a queue that Config.Queue bounds in bytes. What does
//     not fit, or comes while the server is down, is not written there: memory still has it. With Config.Through a put
//     waits for the server.
//   - A deletion holds at once here. The servers are told until they know.
//
// # How does Exists know?
//
// From an index of what this daemon has put and got there, of what others tell (news.go), and of what it asked for in
// the background after an Exists that did not know. So the first Exists of a key may miss a value that is there: one
// that was put before this daemon started, while it was cut off, or a moment ago. It may also say yes to a value that
// the servers have evicted since. A Get finds that out; the index of a server that was flushed, came back empty or was
// down is dropped within a second. Check finds it out too, for the keys that it is given: by the servers' own EXISTS,
// which is no use of a value for their LRU. Two halves of half a million keys each bound it.
//
// Flush does not go by the index: it has the servers look for what begins with a prefix (TestFlush).
//
// A client that waits for ever must not be told yes wrongly. For it there is Sure: once a second each server is asked
// how many values it has evicted, and a fact from before the last eviction is not sure until the server is asked again.
//
// # How is a pool divided?
//
// By go-redis's Ring: rendezvous hashing over the members that answer. A member that leaves or comes back moves its own
// share of the keys and no other. Each daemon decides for itself who answers; while two differ, a key may be put at two
// members. So a pool is for values that their keys name for good, as KV blocks are. Nothing is replicated. A member's
// own keys stay in its store and never go over the network. Its door knows the others by their PeerName and answers
// them from its own memory and disk, so no question is passed on.
//
// # Why go-redis, and how often is a value copied?
//
// github.com/redis/go-redis/v9 is Redis's own client, BSD-2-Clause, and speaks to sentinels, clusters and rings with
// the same calls. A value in one piece of the arena is written to the socket from there, and GetToBuffer reads it from
// the socket into its place: no copy in either direction. A value in several pieces is copied once; Stats.Copied counts
// them. The library's deadline is of a whole command, which for 128 MiB has to be long; conn.go has one for each part.
//
// # What lost
//
// Keyspace events for Exists: the server must be configured for them. hashicorp/memberlist for the members (MPL-2.0,
// well kept): the Ring's heartbeats find out who is there already, and a list or a DNS name says who could be; it would
// be a second port with keys of its own to configure. A breaker for all servers: a dead member would take the others'
// values with it.
package remote
