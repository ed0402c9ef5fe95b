package relocate

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/linked"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
)

// Request is the last request of a conversation, in memory of its own.
type Request struct {
	Method, Path, Query string
	Header              []upstream.Field
	Body                []byte
	Caller              *gate.Caller // whose request it was
	Salt                string       // of its entry, beside the one in the body
	Model               string       // of its entry, in place of the body's
	Session             session.Name // that the conversation is bound by; ID "" = none
}

// overhead is roughly what a conversation takes beside its body.
const overhead = 600

// newest bounds what a turn may add to its conversation, in blocks: 128 KB of text. A prompt that adds more counts as a
// new conversation, so that the look-up stays short.
const newest = 1024

// Conversation is one that a Book keeps.
type Conversation struct {
	Talk
	Request *Request
	Worker  string // that answered the last turn
	Tokens  int    // of the last prompt, as believed

	tip   uint64 // the last block of the last prompt
	order linked.Links[Conversation]
	moved bool // to Worker, by a move, and no turn has come since
	held  bool // its worker leaves, and it has not been moved
}

func (c *Conversation) size() int { return len(c.Request.Body) + overhead }

// Counts says what has become of conversations. It is a running total.
type Counts struct {
	Moved, Failed, Used     int // moves; moves to which nobody answered; moves after which a next turn came
	TokensMoved, TokensUsed int // of the prompts
	Kept                    int // conversations in the book now
	Bytes                   int // that they take
}

// Book keeps the last requests of conversations. It is safe for concurrent use. The zero value keeps nothing until
// Configure.
type Book struct {
	bound   atomic.Int64 // bytes; 0 = nothing is kept
	leaving atomic.Int32 // conversations that are held

	mu     sync.Mutex // guards all below
	tips   map[uint64]*Conversation
	order  linked.List[Conversation] // the one that was answered longest ago first
	counts Counts
}

// Configure sets how many bytes the book may take.
func (b *Book) Configure(bytes int) {
	b.bound.Store(int64(bytes))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trim()
}

// Keeps returns how long a body may be to be kept, 0 if none is. One conversation takes at most a sixteenth of the
// book.
func (b *Book) Keeps() int { return int(b.bound.Load() / 16) }

// Turn is one turn of a conversation.
type Turn struct {
	Worker  string   // that answers it
	Hashes  []uint64 // of the full blocks of its prompt
	Tokens  int      // of its prompt, as believed
	Request *Request // the book keeps it
	Ends    bool     // no turn follows
}

// Answered records that a worker has answered a turn.
func (b *Book) Answered(t *Turn, now time.Time) {
	if len(t.Hashes) == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tips == nil {
		b.tips = map[uint64]*Conversation{}
	}
	c, stays := b.find(t.Hashes), false
	if c == nil {
		c = &Conversation{}
	} else {
		stays = c.held && c.Worker == t.Worker
		b.remove(c)
		b.goOn(c, t.Worker, now)
	}
	if t.Ends {
		return
	}
	c.Request, c.Worker, c.Tokens = t.Request, t.Worker, t.Tokens
	c.Last, c.tip, c.moved = now, t.Hashes[len(t.Hashes)-1], false
	b.add(c)
	if stays { // it is moved with this turn, or at the next one
		c.held = true
		b.leaving.Add(1)
	}
	b.trim()
}

// goOn records that the next turn of c has come.
func (b *Book) goOn(c *Conversation, worker string, now time.Time) {
	if c.moved && c.Worker == worker {
		b.counts.Used++
		b.counts.TokensUsed += c.Tokens
	}
	if gap := now.Sub(c.Last); c.Gap == 0 {
		c.Gap = gap
	} else {
		c.Gap += (gap - c.Gap) / 4
	}
}

// find returns the conversation that a prompt continues, nil if there is none.
func (b *Book) find(hashes []uint64) *Conversation {
	for i := len(hashes) - 1; i >= max(0, len(hashes)-newest); i-- {
		if c := b.tips[hashes[i]]; c != nil {
			return c
		}
	}
	return nil
}

func links(c *Conversation) *linked.Links[Conversation] { return &c.order }

func (b *Book) add(c *Conversation) {
	if same := b.tips[c.tip]; same != nil { // two prompts that are equal to the last full block
		b.remove(same)
	}
	b.tips[c.tip] = c
	b.order.Add(c, links)
	b.counts.Kept++
	b.counts.Bytes += c.size()
}

func (b *Book) remove(c *Conversation) {
	b.release(c)
	delete(b.tips, c.tip)
	b.order.Remove(c, links)
	b.counts.Kept--
	b.counts.Bytes -= c.size()
}

// release ends that c's next turn goes to the worker that leaves.
func (b *Book) release(c *Conversation) {
	if c.held {
		c.held = false
		b.leaving.Add(-1)
	}
}

func (b *Book) trim() {
	for b.order.First != nil && int64(b.counts.Bytes) > b.bound.Load() {
		b.remove(b.order.First)
	}
}

// Home returns the leaving worker that still has the conversation which a prompt continues; "" = there is none, and any
// worker may get it.
func (b *Book) Home(hashes []uint64) string {
	if b.leaving.Load() == 0 {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.find(hashes); c != nil && c.held {
		return c.Worker
	}
	return ""
}

// Leave returns the conversations to move away from a worker, or from all ranks of an address, in the order in which to
// move them. It holds them there until each is moved or Release is called.
func (b *Book) Leave(worker string, now time.Time) []*Conversation {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*Conversation
	for c := b.order.First; c != nil; c = c.order.Next {
		if c.Worker == worker || strings.HasPrefix(c.Worker, worker+"#") {
			all = append(all, c)
		}
	}
	all = Order(all, func(c *Conversation) *Talk { return &c.Talk }, now)
	for _, c := range all {
		if !c.held {
			c.held = true
			b.leaving.Add(1)
		}
	}
	return all
}

// Next returns the last request of a conversation that Leave returned, nil if it needs no move any more: it has ended,
// or another worker has answered its next turn.
func (b *Book) Next(c *Conversation) *Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !c.held {
		return nil
	}
	return c.Request
}

// Moved records that another worker holds the conversation's prompt; "" = the move has failed.
func (b *Book) Moved(c *Conversation, to string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.release(c)
	if to == "" {
		b.counts.Failed++
		return
	}
	b.counts.Moved++
	b.counts.TokensMoved += c.Tokens
	c.Worker, c.moved = to, true
}

// Release lets the next turns of conversations go to any worker, whether they have been moved or not.
func (b *Book) Release(all []*Conversation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range all {
		b.release(c)
	}
}

// Counts returns what has become of conversations.
func (b *Book) Counts() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}
