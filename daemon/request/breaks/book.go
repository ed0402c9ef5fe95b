package breaks

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/recent"
	"github.com/warmpath/warmpath/daemon/request/prompt"
)

const (
	blocks   = 64                   // of a prompt that are compared: what breaks behind its first 8 KB costs little
	maxTurns = 1 << 10              // prompts that each half of a book keeps, some 600 bytes each
	maxKeys  = 1 << 10              // API keys that are counted apart
	every    = 5 * time.Millisecond // a turn is compared, so that the comparison costs nothing at any rate
	fresh    = 1000                 // turns of a key make its shares: those before count less and less
	enough   = 20                   // turns of a key, before which nothing is said of it
	often    = .5                   // of the turns break at one place: less is a change of the subject
)

// Turn is a turn of a session, as the caller knows it.
type Turn struct {
	Key     string    // the name of the API key; "" = none
	Session [2]uint64 // a hash of its name
	Chain   *prompt.Chain
	At      time.Time
}

// Break is where the prompts of a key break.
type Break struct {
	Key   string  `json:"key,omitempty"` // the name of the key; "" = clients without one
	Byte  int     `json:"byte"`          // of the prompt, in which tools come first, then the system's text
	Exact bool    `json:"exact"`         // to eight bytes; else the break is in the 128 bytes from there on
	Share float64 `json:"share"`         // of the turns, 0 to 1
	Turns int     `json:"turns"`         // that were compared of late
}

// Book keeps the beginnings of the last prompts as hashes, and counts where they break. It is safe for concurrent use.
type Book struct {
	last atomic.Int64 // Unix nanoseconds of the last comparison

	mu    sync.Mutex                        // guards all below
	turns *recent.Map[[2]uint64, beginning] // the last of each session
	keys  map[string]*histogram
}

// beginning is that of a prompt.
type beginning struct {
	hashes [blocks]uint64
	n      int
	fine   prompt.Fine
}

// histogram counts where the prompts of a key broke.
type histogram struct {
	turns  int
	breaks [blocks]int
	at     [blocks]int // bytes into the block, from the newest that was hashed in pieces; -1 = none was
}

// New makes an empty book.
func New() *Book {
	return &Book{turns: recent.New[[2]uint64, beginning](maxTurns), keys: map[string]*histogram{}}
}

// Watch returns 1 + the block of a key's prompts that shall be hashed in pieces, or 0.
func (b *Book) Watch(key string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.keys[key]; p != nil {
		if i := p.top(); p.breaks[i] > 1 {
			return i + 1
		}
	}
	return 0
}

// Note compares a prompt with that of the turn before.
func (b *Book) Note(t *Turn) {
	at := t.At.UnixNano()
	if last := b.last.Load(); at-last < int64(every) && at >= last || len(t.Chain.Hashes) == 0 {
		return
	}
	b.last.Store(at)
	b.mu.Lock()
	defer b.mu.Unlock()
	is := beginning{fine: t.Chain.Fine}
	is.n = copy(is.hashes[:], t.Chain.Hashes)
	was, known := b.turns.Get(t.Session)
	b.turns.Put(t.Session, is)
	if known {
		b.count(t.Key, &was, &is)
	}
}

// count counts a turn of a key, and where it broke. The caller holds b.mu.
func (b *Book) count(key string, was, is *beginning) {
	p := b.keys[key]
	if p == nil {
		if len(b.keys) >= maxKeys {
			return
		}
		p = new(histogram)
		for i := range p.at {
			p.at[i] = -1
		}
		b.keys[key] = p
	}
	if p.turns >= fresh {
		p.turns /= 2
		for i := range p.breaks {
			p.breaks[i] /= 2
		}
	}
	p.turns++
	for i := range min(was.n, is.n) {
		if was.hashes[i] == is.hashes[i] {
			continue
		}
		p.breaks[i]++
		if was.fine.Block == i+1 && is.fine.Block == i+1 {
			p.at[i] = was.fine.Parts(&is.fine)
		}
		return
	}
}

// top returns the block in which most break.
func (p *histogram) top() (top int) {
	for i := range p.breaks {
		if p.breaks[i] > p.breaks[top] {
			top = i
		}
	}
	return top
}

// Report returns where the prompts of keys break often, the most frequent first.
func (b *Book) Report() []Break {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []Break
	for key, p := range b.keys {
		i := p.top()
		share := float64(p.breaks[i]) / float64(p.turns)
		if p.turns < enough || share < often {
			continue
		}
		all = append(all, Break{Key: key, Byte: i*prompt.BlockBytes + max(0, p.at[i]), Exact: p.at[i] >= 0, Share: share,
			Turns: p.turns})
	}
	slices.SortFunc(all, func(x, y Break) int { return cmp.Or(cmp.Compare(y.Share, x.Share), cmp.Compare(x.Key, y.Key)) })
	return all
}
