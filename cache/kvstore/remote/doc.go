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
