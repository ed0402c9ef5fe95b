//go:build race

package session

// The detector makes a guess some thirty times as slow.
func init() { guesses = 50_000 }
