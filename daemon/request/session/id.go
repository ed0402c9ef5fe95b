package session

import (
	"crypto/rand"
	"strings"
)

// Ids of the router's own are base32: 26 characters of 5 bits each.
const (
	mintedLen   = 26
	mintedChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)

// MintID returns an id that cannot be guessed: 130 random bits as 26 letters and digits.
func MintID() string { return rand.Text() }

// Minted reports whether an id has the form of those that MintID returns. A client may have made up one that has it
// too.
func Minted(id string) bool {
	return len(id) == mintedLen && strings.Trim(id, mintedChars) == ""
}
