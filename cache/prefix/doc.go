// Package prefix answers, for a prompt hashed into blocks: how many leading blocks is each worker believed to hold? It
// learns from every routed request and its answer.
//
// # The shape
//
// A directory (armon/go-radix) leads from a namespace's name, "model:adapter#salt", to a radix tree on chained block
// hashes, compressed into runs: a node is a run of blocks without a branch, and a chat is one or two nodes however long
// it gets. Hash i of a chain covers block i and all before it, so two runs agree up to a point and differ after it. The
// common length is a binary search, and 64k tokens cost no more than 8k.
//
// Every node has holders {worker, length, LRU place}. A prompt that extends a run extends it in place, and other
// holders keep their shorter length. A node is split only where prompts part, or where a worker's blocks part in age; a
// later touch of the whole joins it again. A run grows with a quarter to spare: with an eighth nearly every turn of a
// chat copies it, and an insert allocates x1.75; with a half the index takes x1.17 of the memory. The three things that
// are always true stand in forest.go; TestOracle proves them after every step.
//
// Who has several touches to do warms up for them first (Index.Warm): memory that was not read for long is most of what
// they cost.
//
// # Why the worker's own LRU
//
// The index must forget what the worker forgets. Each worker has one LRU over all namespaces, since its GPU has one
// pool of blocks, of its real capacity, touched leaf first and root last and trimmed block by block from the end of the
// oldest chain: vLLM's order. In simulation half the true capacity took the mean time to first token to fifty times;
// double costs little.
//
// # What lost
//
// A flat map of hashes walks every block, so its time grows with the prompt. go-radix as the engine itself takes
// fourteen times the memory a block and inserts twenty times slower; it is kept in the tests as the second oracle, with
// its exact recipe. A table of the last 256 blocks at most, as others have it, lost 23 points of hit rate on long
// documents; depth has no bound here. A lock for each namespace would be possible for readers, but an insert evicts
// from any namespace: one RWMutex guards everything.
//
// # Where KV events go
//
// Into cache/holdings, a tree of another shape. This one is what was routed, and all of it assumes that who holds a
// block holds those before it: a holder is a length, Match goes on from the deepest node, split and join move offsets.
// A worker's events break that: a removal inside a run leaves a hole, and blocks in the memory of the CPU may have no
// head on the GPU. For a worker whose events are live its row is filled from there, for the others from here.
//
// # How the files lie
//
// index over directory over namespace over forest (forest, touch), made of node, kids, holders and the worker's lru.
// match is the walk of a lookup, warm reads ahead for several touches. cursor reads a worker's LRU in parts, for who
// writes it down. reuse learns from a forest of its own how likely a block of some age is asked for again.
package prefix
