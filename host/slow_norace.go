//go:build !race

package host

// slowdown is that of the build: none.
const slowdown = 1
