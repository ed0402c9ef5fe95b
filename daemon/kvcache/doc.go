// Package kvcache runs the workers' KV cache as it is configured: one kvstore.Store, and the doors at which LMCache
// reaches it. Without a door there is nothing of it, and no memory is taken.
//
// The doors close before the store, so that nobody reads memory that is given back.
package kvcache
