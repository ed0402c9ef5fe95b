//go:build !race

package holdings

const raceEnabled = false
