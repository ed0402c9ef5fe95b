package names

import (
	"cmp"
	"strings"
	"sync"

	"github.com/warmpath/warmpath/cache/parts/recent"
)

// kept is how many sessions each half of a book keeps, some 60 bytes each.
const kept = 1 << 16

// Book keeps the models that sessions have got, so that other weights change none that runs. It is safe for concurrent
// use. The zero value is empty.
type Book struct {
	mu       sync.Mutex // guards all below
	sessions *recent.Map[uint64, string]
}

// Model returns the model of the session of that key under the alias: the one that it had, if the alias still leads
// there.
func (b *Book) Model(a *Alias, key uint64) string {
	if len(a.Targets) == 1 && a.next == nil {
		return a.Targets[0].Model
	}
	key ^= Key(cmp.Or(a.split, a.Name))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.make()
	model, ok := b.sessions.Get(key)
	if !ok || !a.leadsTo(model) {
		model = a.Choose(key)
	}
	if ok || len(a.Targets) > 1 {
		b.sessions.Put(key, model)
	}
	return model
}

// Keep has the session of that key stay with a model, which may be a fallback's.
func (b *Book) Keep(a *Alias, key uint64, model string) {
	if len(a.Targets) == 1 && a.next == nil && !a.later {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.make()
	b.sessions.Put(key^Key(a.Name), model)
}

// Made notes by which alias and model a stored response was made.
func (b *Book) Made(a *Alias, key uint64, model string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.make()
	b.sessions.Put(key, a.Name+" "+model)
}

// Maker returns what Made noted, nothing if it did not.
func (b *Book) Maker(key uint64) (name, model string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.make()
	noted, _ := b.sessions.Get(key)
	name, model, _ = strings.Cut(noted, " ")
	return name, model
}

// make makes the map before its first use. b.mu is held.
func (b *Book) make() {
	if b.sessions == nil {
		b.sessions = recent.New[uint64, string](kept)
	}
}
