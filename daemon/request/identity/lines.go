package identity

import (
	"hash/maphash"
	"time"
)

// Lineage is the By of conversations that no client names. A prompt that extends the last prompt and answer of exactly
// one conversation of the same API key continues it; the last prompt alone, as long as its answer has not come.
const Lineage = "lineage"

const (
	ways     = 4                // ends in a set; a new one takes the place of the oldest
	sets     = 1 << 12          // a table takes some 600 KB, from the first request without a name on
	kept     = int64(time.Hour) // for which an end is kept
	maxAdded = 1 << 10          // blocks that a turn may add: 128 KB of text
)

// end is where a conversation ends so far.
type end struct {
	mark  Mark
	line  uint64 // the conversation; 0 = it has gone on from there
	asked bool   // a prompt whose answer has not come
}

// Mark is an end of a key's conversation: the hash of the last full block, and so of all text before it, mixed with
// that of the key's name. 0 = none.
type Mark uint64

// several is the line of an end at which two conversations are the same text.
const several = 1<<64 - 1

// key returns the conversation that a prompt continues there; none if it begins another one.
func (e *end) key() Key {
	if e.line == several {
		return Key{}
	}
	return Key{e.line, 0}
}

// lines are ends of conversations. A full set forgets the oldest, so that clients take bounded memory.
type lines struct {
	tags [sets][ways]uint32 // the high half of each mark: a prompt is compared with these alone, block by block
	ends [sets][ways]end
	at   [sets][ways]int64 // Unix nanoseconds, as all times of a Book's ends
}

// find returns an end, nil if it is not kept.
func (l *lines) find(mark Mark, now int64) *end {
	set, tag := mark%sets, uint32(mark>>32)
	for way, t := range &l.tags[set] {
		if e := &l.ends[set][way]; t == tag && e.mark == mark && now-l.at[set][way] < kept {
			return e
		}
	}
	return nil
}

// put writes an end. If another conversation ends there too, it is neither's.
func (l *lines) put(e end, now int64) {
	if was := l.find(e.mark, now); was != nil {
		if was.line != e.line && was.line != 0 {
			e.line = several
		}
		*was = e
		return
	}
	set, old := e.mark%sets, 0
	for way, at := range &l.at[set] {
		if at < l.at[set][old] {
			old = way
		}
	}
	l.tags[set][old], l.ends[set][old], l.at[set][old] = uint32(e.mark>>32), e, now
}

// marker returns what the hashes of a key's prompts are mixed with. They have a secret seed and it a random one: no
// client can make up the mark of another.
func (b *Book) marker(owner string) uint64 { return maphash.String(b.seeds[0], owner) }

// Extends returns the last end that a key's prompt extends, and the conversation that it continues there: none if that
// has gone on, or there are several. It changes nothing.
func (b *Book) Extends(owner string, hashes []uint64, now int64) (Mark, Key) {
	mix, least := b.marker(owner), max(0, len(hashes)-maxAdded)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lines == nil {
		return 0, Key{}
	}
	for i := len(hashes) - 1; i >= least; i-- {
		mark := Mark(hashes[i] ^ mix)
		tags, tag := &b.lines.tags[mark%sets], uint32(mark>>32)
		if tags[0] != tag && tags[1] != tag && tags[2] != tag && tags[3] != tag {
			continue
		}
		if e := b.lines.find(mark, now); e != nil {
			if e.asked && i == len(hashes)-1 { // the same prompt again
				return mark, Key{}
			}
			return mark, e.key()
		}
	}
	return 0, Key{}
}

// Step is a request that a worker gets, of a conversation that no client names.
type Step struct {
	From   Mark // the end that its prompt extends, as Extends returned it
	Of     Key  // the conversation that it continues there; none if it begins one
	Kind   Kind
	Hash   uint64 // of the last full block of its prompt; 0 = it fills none
	Novel  bool   // no worker was known to have all of the prompt
	Worker uint64
	At     time.Time
}

// Step counts a request, and returns its conversation. It is a new one if another request has continued the other one.
// The mark is where the conversation ends until the answer has come: 0 if it is new and its prompt is not novel, for
// what many prompts begin with is no sign of a conversation.
func (b *Book) Step(s *Step) (k Key, asked Mark) {
	mix, now := b.marker(s.Kind.Owner), s.At.UnixNano()
	b.mu.Lock()
	defer b.mu.Unlock()
	k = b.goOn(s.From, s.Of, now)
	if k != (Key{}) || s.Novel {
		asked = Mark(s.Hash ^ mix)
	}
	var known Talk
	if k == (Key{}) {
		b.begun++
		k = Key{max(1, maphash.Comparable(b.seeds[1], b.begun)), 0}
	} else {
		known, _ = b.talks.Get(k)
	}
	if asked != 0 {
		if b.lines == nil {
			b.lines = new(lines)
		}
		b.lines.put(end{mark: asked, line: k[0], asked: true}, now)
	}
	b.turn(k, known, s.Kind, s.Worker, s.At)
	return k, asked
}

// goOn takes an end of a conversation for a request. It returns the conversation, or none if another request has taken
// it. The caller holds mu.
func (b *Book) goOn(m Mark, k Key, now int64) Key {
	if k == (Key{}) {
		return k
	}
	e := b.lines.find(m, now)
	if e == nil || e.line != k[0] {
		return Key{}
	}
	e.line = 0
	return k
}

// Ends records that the answer has come to a prompt that was asked, and the last hash of both. It does nothing if the
// conversation has gone on without the answer, or the answer fills no block: another prompt may have the same last one.
func (b *Book) Ends(k Key, owner string, asked Mark, hash uint64, now int64) {
	e := end{mark: Mark(hash ^ b.marker(owner)), line: k[0]}
	if e.mark == asked {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if was := b.lines.find(asked, now); was != nil {
		if was.line == 0 {
			return
		}
		if was.line == k[0] {
			was.line = 0
		}
	}
	b.lines.put(e, now)
}
