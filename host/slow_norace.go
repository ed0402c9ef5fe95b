//go:build !race

package host

// slowdown is 1: this build has no race detector.
const slowdown = 1
