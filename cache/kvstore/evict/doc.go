// Package evict chooses which value of a full store goes next: lru, s3fifo or fifo. It orders items by their bytes,
// holds no value, and steps around items that must stay for now. Not safe for concurrent use.
//
// # Why by hand?
//
// A store with leases needs three things at once: a victim now, not from a goroutine's buffer; one without a reader;
// and sizes in bytes from 28 to 134,217,728. github.com/maypok86/otter (Apache-2.0) and github.com/dgraph-io/ristretto
// (Apache-2.0) are well kept, but own their values, evict in the background, and have no call to mark an item as in
// use. lru has more hits at the sizes that a tier has. testdata/bench/policies runs them and this package over one
// trace. README.md there has the table.
package evict
