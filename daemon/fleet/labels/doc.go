// Package labels numbers the labels of a pool's workers, so that a worker's labels are the bits of a word, and a fence
// is tested with two operations.
package labels
