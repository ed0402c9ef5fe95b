//go:build race

package host

// slowdown is what the race detector makes of the time that wazero's compiler takes.
const slowdown = 12
