// Package catalog lists the keys of a tier in their order: the keys under a prefix, with the bytes of their values. A
// map finds a single key; an operator lists the keys that begin with a model's name.
//
// The owner of the values reports each put and deletion. The catalogue holds no value. It shares the keys with its
// owner and needs little memory of its own. It can be bounded: then it drops the key that was put or found least
// recently, and an owner that uses the catalogue alone returns a miss for that key.
//
// github.com/armon/go-radix (MIT, used by HashiCorp and a dozen other projects, nothing left to change) keeps keys in
// order, and finds a prefix by its length. It cannot begin a walk behind a key: Page goes to the neighbours of each of
// the key's own prefixes in turn, so that the last page of 200,000 keys costs 2.3 times the first (BenchmarkPage). What
// lost: a walk from the first key for each page, 230 times, under a lock that every put needs.
package catalog
