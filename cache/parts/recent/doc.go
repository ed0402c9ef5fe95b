// Package recent is a map that keeps the keys which were written last. It is bounded, and costs no list of who was
// written when: it has two halves, and drops the older one when the newer is full.
package recent
