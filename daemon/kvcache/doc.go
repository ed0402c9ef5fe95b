// Package kvcache runs the workers' KV cache as it is configured: one kvstore.Store, and the doors at which LMCache
// reaches it. Without a door there is nothing of it, and no memory is taken.
//
// [Cache.Holds] is the size of the tier in tokens, for the strategies: bytes of room over the bytes of a token that the
// puts show. Package chunks says what of that is known and what is guessed.
//
// The doors close before the store, so that nobody reads memory that is given back.
package kvcache
