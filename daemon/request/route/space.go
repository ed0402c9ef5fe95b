package route

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
)

// Secret makes the seeds of all namespaces. Routers that share it give equal prompts equal hashes. Nobody without it
// can make a prompt whose hashes are those of another's.
type Secret [32]byte

// NewSecret makes one at random.
func NewSecret() (s Secret) {
	_, _ = rand.Read(s[:]) // never fails
	return s
}

// Fingerprint returns a number by which routers compare their secrets. It does not reveal the secret.
func (s *Secret) Fingerprint() uint64 {
	sum := sha256.Sum256(append([]byte("warmpath secret "), s[:]...))
	return binary.LittleEndian.Uint64(sum[:])
}

// space returns the seed of a namespace's hashes, and its number. The seed stays secret: anyone who has it can make
// prompts collide. Other routers get the number in place of the name, which may hold a tenant's salt.
func (s *Secret) space(name string) (seed, id uint64) {
	var room [160]byte // most names fit
	sum := sha256.Sum256(append(append(room[:0], s[:]...), name...))
	return binary.LittleEndian.Uint64(sum[:]), binary.LittleEndian.Uint64(sum[8:])
}
