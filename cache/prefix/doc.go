// Package prefix estimates, for a prompt hashed into blocks, how many leading blocks each worker holds. It learns from
// every routed request and its answer.
//
// # The shape
//
// A directory (armon/go-radix) maps a namespace's name, "model:adapter#salt", to a radix tree on chained block hashes,
// compressed into runs: a node is a run of blocks without a branch, and a chat is one or two nodes however long it
// gets. Hash i of a chain covers block i and all before it, so two runs agree up to a point and differ after it. A
// binary search finds the common length, and 64k tokens cost no more than 8k.
//
// Every node has holders {worker, length, LRU place}. A prompt that extends a run extends it in place, and other
// holders keep their shorter length. A node is split only where prompts part, or where a worker's blocks part in age; a
// later touch of the whole joins it again. A run grows with a quarter to spare: with an eighth nearly every turn of a
// chat copies it, and an insert allocates x1.75; with a half the index takes x1.17 of the memory. forest.go lists the
// three invariants; TestOracle checks them after every step.
//
// A prompt is entered when it is sent (Enter), and Retract takes it out again if a worker then refuses the request. It
// leaves the blocks that another request has touched since.
//
// # Why
//
// Each worker has one LRU over all namespaces, as large as its KV cache. It evicts in vLLM's order, from the end of the
// oldest chain. why.md has the reason, and what was tried and lost.
package prefix
