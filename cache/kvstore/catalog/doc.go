// Package catalog lists the keys of a tier in their order: which there are under a prefix, and how many bytes they
// have. A map knows a key that is asked for; an operator asks for what begins with a model's name.
//
// The owner of the values tells of each put and deletion. The catalogue holds no value. It takes little memory of its
// own beside the keys, which it shares with its owner, and can be bounded: then it forgets the key that was put or
// found least recently, and whoever answers from it alone answers a miss.
//
// github.com/armon/go-radix (MIT, HashiCorp's and a dozen other projects', nothing left to change) keeps keys in order,
// and finds a prefix by its length. It has no way to begin a walk behind a key: Page goes to the neighbours of each of
// the key's own prefixes in turn, so that the last page of 200,000 keys costs 2.3 times what the first does
// (BenchmarkPage). What lost: a walk from the first key for each page, 230 times, under a lock that every put needs.
package catalog
