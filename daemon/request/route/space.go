package route

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"sync"
)

// reloads counts how often each name of an adapter was given up or given other weights: what was cached for it before
// is worth nothing. Its zero value is ready.
type reloads struct {
	mu sync.RWMutex // guards of
	of map[string]int
}

// maxReloads bounds the names. Beyond it all begin anew: what an old name had is long evicted.
const maxReloads = 4096

// ForgetAdapter drops what the workers are believed to hold for an adapter.
func (p *Pool) ForgetAdapter(name string) {
	r := &p.reloads
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || len(r.of) >= maxReloads && r.of[name] == 0 {
		r.of = map[string]int{}
	}
	r.of[name]++
}

// cacheName returns the name under which the workers' caches of a model are known.
func (p *Pool) cacheName(model string) string {
	p.reloads.mu.RLock()
	times := p.reloads.of[model]
	p.reloads.mu.RUnlock()
	name := p.Workers.CacheName(model)
	if times > 0 {
		name += "\x00" + strconv.Itoa(times)
	}
	return name
}

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
