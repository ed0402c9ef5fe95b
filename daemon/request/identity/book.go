package identity

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/warmpath/warmpath/cache/parts/recent"
)

// maxTalks bounds the conversations of each of a book's two halves: both take some 5 MB.
const maxTalks = 1 << 15

// maxKinds bounds the kinds of conversation that are counted apart: as many as keys and fields that name sessions.
const maxKinds = 1 << 10

// Key identifies a conversation in a book. The zero value is none.
type Key [2]uint64

// Talk is what is known of a conversation.
type Talk struct {
	Turns   uint32    // its requests that were sent to a worker
	Last    time.Time // when the last of them was
	Worker  uint64    // that it was sent to, as the caller counts them
	Weights uint64    // version of the weights that its last answer had, as the caller counts them; 0 = not known
	Output  float64   // mean tokens of its answers, of late; 0 = none has ended
}

// Kind is conversations that are alike: those of one API key's agents of one make.
type Kind struct{ Owner, By string }

// habit is how long the conversations of a kind are, by the turns of those that began of late so far, and how many
// seconds pass between two turns.
type habit struct{ begun, turns, seconds, gaps float64 }

// longestGap is the longest silence that counts as a gap between two turns: after a longer one a person has come back.
const longestGap = 10 * time.Minute

// Book counts the turns of conversations. It keeps those that were used last, at least maxTalks. It is safe for
// concurrent use.
type Book struct {
	seeds [2]maphash.Seed // new in each process, so that no client can make up a name for another's place

	mu    sync.Mutex // guards all below
	talks *recent.Map[Key, Talk]
	kinds map[Kind]habit
	lines *lines // of conversations that no client names; nil = there was none
	begun uint64 // how many of these
}

// NewBook makes an empty book.
func NewBook() *Book {
	return &Book{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, talks: recent.New[Key, Talk](maxTalks),
		kinds: map[Kind]habit{}}
}

// Of returns the key of a tenant's conversation; none for the name "".
func (b *Book) Of(tenant, session string) (k Key) {
	if session == "" {
		return k
	}
	type named struct{ tenant, session string }
	for i, seed := range b.seeds {
		k[i] = max(1, maphash.Comparable(seed, named{tenant, session}))
	}
	return k
}

// Look returns what is known of a conversation, and how many turns one of its kind has on average after any of its
// turns. It changes nothing.
func (b *Book) Look(k Key, of Kind) (t Talk, more float64) {
	prior := assumed
	if of.By == Lineage { // many are one request alone: nothing is assumed of them
		prior.turns = prior.begun
	} else if k == (Key{}) {
		return t, 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.kinds[of]
	if k != (Key{}) {
		t, _ = b.talks.Get(k)
	}
	return t, (prior.turns+h.turns)/(prior.begun+h.begun) - 1
}

// Gap returns the mean seconds between two turns of conversations of a kind, 0 if that is not known.
func (b *Book) Gap(of Kind) float64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.kinds[of]
	return h.seconds / max(1, h.gaps)
}

// assumed is a prior that is added to the observed counts of each kind: agents' sessions are long. Conversations that
// have just begun count as if they ended there, and without it the first ones of a kind, or many that begin at once,
// would make all look short. Seven of one turn each outweigh it.
var assumed = habit{begun: 3, turns: 3 * 16}

// fresh is how many conversations of a kind make its habit: those before count less and less.
const fresh = 1000

// Turn counts a request of a conversation that was sent to a worker.
func (b *Book) Turn(k Key, of Kind, worker uint64, at time.Time) {
	if k == (Key{}) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t, _ := b.talks.Get(k)
	b.turn(k, t, of, worker, at)
}

// turn counts a request of a conversation of which t is known. The caller holds mu.
func (b *Book) turn(k Key, t Talk, of Kind, worker uint64, at time.Time) {
	h, known := b.kinds[of]
	if t.Turns == 0 {
		h.begun++
	}
	h.turns++
	if gap := at.Sub(t.Last); t.Turns > 0 && gap >= 0 && gap < longestGap {
		h.seconds, h.gaps = h.seconds+gap.Seconds(), h.gaps+1
	}
	if h.begun > fresh {
		h = habit{begun: h.begun / 2, turns: h.turns / 2, seconds: h.seconds / 2, gaps: h.gaps / 2}
	}
	if known || len(b.kinds) < maxKinds {
		b.kinds[of] = h
	}
	t.Turns++
	t.Last, t.Worker = at, worker
	b.talks.Put(k, t)
}

// Went records which worker got a turn that was counted, and the version of its weights. The last one that got it has
// answered it.
func (b *Book) Went(k Key, worker, version uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.talks.Get(k); ok {
		t.Worker, t.Weights = worker, version
		b.talks.Put(k, t)
	}
}

// learning is the weight of the newest answer in the mean of a conversation's.
const learning = .3

// Answered learns from the length of an answer in tokens, if the conversation goes on.
func (b *Book) Answered(k Key, tokens int) {
	if k == (Key{}) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t, ok := b.talks.Get(k)
	if !ok {
		return
	}
	if t.Output == 0 {
		t.Output = float64(tokens)
	}
	t.Output += learning * (float64(tokens) - t.Output)
	b.talks.Put(k, t)
}

// Forget drops a conversation that has ended.
func (b *Book) Forget(k Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.talks.Delete(k)
}
