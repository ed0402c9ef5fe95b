package sdk

import (
	"github.com/warmpath/warmpath/sdk/abi"
	"github.com/warmpath/warmpath/sdk/internal/imports"
)

// PrefixMatch is the number of leading blocks of the prompt that worker i holds in any tier.
func PrefixMatch(i int) int { return max(0, int(imports.PrefixMatch(int32(i)))) }

// PrefixHash is the hash of the prompt up to and with the given block, 0 if the prompt is shorter.
func PrefixHash(block int) uint64 { return imports.PrefixHash(int32(block)) }

// Holder is what the host's index believes of one worker.
type Holder = abi.Holder

// PrefixBest returns the worker that holds the most of the prompt, of all workers of the pool. If that one is no
// candidate, its Row is -1. ok is false if no worker holds any of it.
func PrefixBest() (h Holder, ok bool) {
	return h, imports.PrefixBest(&h) == abi.HolderSize
}

// PrefixWorker returns what the index believes of worker i: how much of the prompt it holds, how much in all, and for
// how long what goes next has not been used.
func PrefixWorker(i int) (h Holder, ok bool) {
	return h, imports.PrefixWorker(int32(i), &h) == abi.HolderSize
}

// PrefixMatchOf returns the leading blocks of another prompt of the same model and tenant that worker i holds. hashes
// are its blocks', as [PrefixHash] gave them for an earlier request, at most [abi.MaxChain].
func PrefixMatchOf(i int, hashes []uint64) int {
	return max(0, int(imports.PrefixMatchKey(int32(i), hashes)))
}

// Tier is how large a tier of a worker is, how full, and how fast.
type Tier = abi.Tier

// CacheTiers returns the tiers that worker i has and the host knows, the GPU first.
func CacheTiers(i int) []Tier {
	tiers := make([]Tier, 3)
	n := int(imports.CacheTiers(int32(i), tiers)) / abi.TierSize
	return tiers[:min(max(n, 0), len(tiers))]
}
