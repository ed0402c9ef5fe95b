// Package holdings answers, for a prompt's token ids: how many leading tokens does each worker hold by its own reports,
// on its GPU, in its own memory or disk, in the shared tier? It learns from the events that engines send when they
// store and evict blocks. cache/prefix estimates the same from what was routed to a worker. There are no sockets here.
//
// # The shape
//
// A directory (armon/go-radix) leads from "adapter#salt" to planes, one for each block size, each with a lock of its
// own. It is not cache/prefix's directory, since an event names no model: it has the adapter and the salt of its
// worker. A plane is a tree of runs of chained hashes. Hash i covers block i and all before it, and is made here of the
// token ids (xxh3, begun with a secret, or a tenant could make up prompts that collide). The engine's own hashes are
// only compared.
//
// Nodes are never split and never joined. A child hangs at any offset of its parent, so (node, offset) names a block
// for as long as anybody holds it, and a worker's table of engine hash -> (node, offset, copies) stays right whatever
// others do. A run is extended and cut at its end. Every node has holders, one a worker: a bitmap for each tier, since
// a removal leaves a hole, and the leading lengths that a lookup needs.
//
// # Rules
//
//   - One lookup fills three views: GPU; GPU or Local; these or shared. It goes on into a child only for workers whose
//     depth is the child's start, so what is below a hole does not count. It counts (len-1)/size blocks of a prompt.
//   - Engines store the same block more than once, and remove each copy. Copies are counted a hash and tier.
//   - Two hashes may name the same block: engines before 0.17 do not send a prompt's salt. Such twins are counted.
//   - A store whose parent is not known is parked. Removals and copies meanwhile are counted in it.
//   - A salt is in the first event of a chain only: what follows goes where its parent is.
//   - A worker that reports more than Config.Blocks, or pins more of Config.Chain than any other, is cleared and not
//     live. No knowledge is better than a wrong one.
//   - A dispatch is predicted: its blocks count as on the GPU until an event confirms them, or Config.Predicted.
//
// TestRecordedEvents compares the index with what three releases of vLLM sent and then found in their caches.
// TestOracle compares it with brute force after random events, and checks the invariants after every step.
//
// # Locks
//
// Index.mu, then worker.mu, then forecast.mu, then one plane.mu; directory.mu is taken last and alone. A worker's table
// is under worker.mu only: while a plane is locked for a store nothing is hashed, and no table is searched.
//
// # Why
//
// why.md has what was measured, and what was tried and lost.
package holdings
