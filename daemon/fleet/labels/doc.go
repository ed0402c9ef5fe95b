// Package labels numbers the labels of a pool's workers. A worker's labels are then the bits of a word, and two
// operations test a fence, the set of labels that a key's workers must have.
package labels
