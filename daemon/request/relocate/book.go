package relocate

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/linked"
	"github.com/warmpath/warmpath/daemon/request/session"
	"github.com/warmpath/warmpath/daemon/transport/gate"
	"github.com/warmpath/warmpath/daemon/transport/upstream"
	"github.com/warmpath/warmpath/sdk/abi"
)

// Request is the last request of a conversation, in memory of its own.
type Request struct {
	Method, Path, Query string
	Header              []upstream.Field
	Body                []byte
	Caller              *gate.Caller // whose request it was
	Salt                string       // of its entry, beside the one in the body
	Model               string       // of its entry, in place of the body's
	Served              string       // the model that has answered
	Session             session.Name // that the conversation is bound by; ID "" = none
	Named               session.Name // that the client calls it by; ID "" = none
	Known               abi.Talk     // what a strategy gets of it: the hashes, and the priority
	Weights             uint64       // version of the weights that it keeps to; 0 = any

	tokens int // of its prompt; Answered sets it
}

// overhead is roughly what a conversation takes beside its body.
const overhead = 600

// newest bounds what a turn may add to its conversation, in blocks: 128 KB of text. A prompt that adds more counts as a
// new conversation, so that the look-up stays short.
const newest = 1024

// Conversation is one that a Book keeps.
type Conversation struct {
	Talk
	Request *Request // nil = another router has sent the last turn, and moves it
	Worker  string   // that answered the last turn
	Tokens  int      // of the last prompt, as believed

	tip   uint64 // the last block of the last prompt
	order linked.Links[Conversation]
	asked time.Time // when its next turn came to a worker that leaves
	moved bool      // to Worker, by a move, and no turn has come since
	used  bool      // its last move was of use: the next turn has come to Worker
	bytes int       // of KV that its last move was of; 0 = not known
	stays stays
}

func (c *Conversation) size() int {
	if c.Request == nil {
		return overhead
	}
	return len(c.Request.Body) + overhead
}

// Counts says what has become of conversations. It is a running total.
type Counts struct {
	Moved, Failed, Used     int // moves; moves to which nobody answered; moves after which a next turn came
	TokensMoved, TokensUsed int // of the prompts
	TokensLoaded            int // of TokensMoved: from the tier that all workers share
	BytesMoved, BytesUsed   int // of the KV of TokensMoved and TokensUsed, as far as a token's bytes are known
	Kept                    int // conversations in the book now
	Bytes                   int // that they take

	Took   [ways]time.Duration // of the requests that moves and wishes have sent
	Wishes [outcomes]int
}

// stays is why the next turn of a conversation goes to its worker, whatever the strategy says.
type stays uint8

const (
	free    stays = iota // it does not
	held                 // the conversation is to be moved away, and is still there
	arrived              // it has been moved there, and no turn has come since
)

// Book keeps the last requests of conversations. It is safe for concurrent use. The zero value keeps nothing until
// Configure.
type Book struct {
	// All are set before the first plan.
	Prefills func(worker string) bool   // whether a request waits there for its first byte; nil = none does
	Tier     func() bool                // whether the workers share a tier; nil = they do not
	Token    func(model string) float64 // bytes of a token's KV, 0 if they are not known; nil = they are not

	// Fits reports whether a worker may have a conversation, by the version of its weights; nil = each may.
	Fits func(r *Request, worker string, now time.Time) bool

	// Rank sets the values of conversations, or returns false; nil = their value is the probability of a next turn.
	Rank func([]abi.Talk) bool

	Told, Asked Calls                        // hand-overs that other routers are to begin, and those that they ask for
	Routers     atomic.Int32                 // that share a history, this one too; 0 = 1
	Takers      func(now time.Time) []string // the workers that take requests: one that drains does not

	bound atomic.Int64 // bytes; 0 = nothing is kept
	holds atomic.Int32 // conversations whose next turn goes to their worker

	mu     sync.Mutex // guards all below
	tips   map[uint64]*Conversation
	order  linked.List[Conversation] // the one that was answered longest ago first
	theirs linked.List[Conversation] // likewise, those of other routers
	others int                       // how many
	counts Counts
	tasks  []*Task
	rests  map[string]time.Time // by worker: until when it gets no piece of a wish

	arrivals []*Conversation // may be arrived, the one that has been moved first is the first
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
	Request *Request // the book keeps it; nil = another router has sent it
	Moves   bool     // it is no turn: that router moves the conversation to Worker
	Ends    bool     // no turn follows
}

// Answered records that a worker has answered a turn, or that another router has sent it one. Of routers that share a
// history, the one that has sent the last turn of a conversation has its prompt, and moves it.
func (b *Book) Answered(t *Turn, now time.Time) {
	if len(t.Hashes) == 0 || b.Keeps() == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.tips == nil {
		b.tips, b.rests = map[uint64]*Conversation{}, map[string]time.Time{}
	}
	c, waits, tip := b.find(t.Hashes), false, t.Hashes[len(t.Hashes)-1]
	switch {
	case t.Moves:
		if c != nil && c.Request == nil && c.tip == tip && c.Worker != t.Worker {
			b.put(c, t.Worker)
		}
		return
	case c == nil:
		c = &Conversation{}
	case t.Request == nil && c.Request != nil && now.Before(c.Last): // heard late
		return
	default:
		waits = c.stays == held && c.Worker == t.Worker
		b.remove(c)
		b.goOn(c, t.Worker, now)
	}
	if t.Ends {
		return
	}
	if t.Request != nil {
		t.Request.tokens = t.Tokens
	}
	c.Request, c.Worker, c.Tokens = t.Request, t.Worker, t.Tokens
	c.Last, c.tip, c.moved = now, tip, false
	b.add(c)
	if waits { // it is moved with this turn, or at the next one
		b.hold(c, held)
	}
	b.trim()
}

// goOn records that the next turn of c has come.
func (b *Book) goOn(c *Conversation, worker string, now time.Time) {
	if c.moved && c.Worker == worker {
		b.counts.Used++
		b.counts.TokensUsed += c.Tokens
		b.counts.BytesUsed += c.bytes
		c.used = true
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
	b.counts.Bytes += c.size()
	if c.Request == nil {
		b.theirs.Add(c, links)
		b.others++
		return
	}
	b.order.Add(c, links)
	b.counts.Kept++
}

func (b *Book) remove(c *Conversation) {
	b.hold(c, free)
	delete(b.tips, c.tip)
	b.counts.Bytes -= c.size()
	if c.Request == nil {
		b.theirs.Remove(c, links)
		b.others--
		return
	}
	b.order.Remove(c, links)
	b.counts.Kept--
}

// hold has the next turn of c go to its worker, or ends that.
func (b *Book) hold(c *Conversation, why stays) {
	if c.stays == free && why != free {
		b.holds.Add(1)
	} else if c.stays != free && why == free {
		b.holds.Add(-1)
	}
	c.stays = why
}

// trim keeps the book within its bound, and the conversations of other routers within what one of its own may take.
func (b *Book) trim() {
	for b.theirs.First != nil && b.others*overhead > b.Keeps() {
		b.remove(b.theirs.First)
	}
	for b.order.First != nil && int64(b.counts.Bytes) > b.bound.Load() {
		b.remove(b.order.First)
	}
}

// Home returns the worker that the next turn of the conversation which a prompt continues must go to, as it is moved
// away from there and has not been, or has been moved there; "" = any worker may get it.
func (b *Book) Home(hashes []uint64, now time.Time) string {
	if b.holds.Load() == 0 {
		return ""
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.find(hashes); c != nil && c.stays != free {
		if c.stays == arrived && !b.takes(c.Worker, now) { // it drains in its turn, or is down
			b.hold(c, free)
			return ""
		}
		c.asked = now
		return c.Worker
	}
	return ""
}

// forget lets the next turns of conversations go to any worker that have been moved and have ended. The caller holds
// b.mu.
func (b *Book) forget(now time.Time) {
	for len(b.arrivals) > 0 {
		c := b.arrivals[0]
		if c.stays == arrived && c.GoesOn(now) >= ended {
			return
		}
		if c.stays == arrived {
			b.hold(c, free)
		}
		b.arrivals = b.arrivals[1:]
	}
}

// takes reports whether a worker takes requests.
func (b *Book) takes(worker string, now time.Time) bool {
	return slices.Contains(b.Takers(now), worker)
}

// fits reports whether a worker may have the conversation of a request.
func (b *Book) fits(r *Request, worker string, now time.Time) bool {
	return b.Fits == nil || r.Weights == 0 || b.Fits(r, worker, now)
}

// suited returns the workers that take requests and may have one of these conversations.
func (b *Book) suited(all []*Conversation, now time.Time) []string {
	workers := b.Takers(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(workers, func(id string) bool {
		return !slices.ContainsFunc(all, func(c *Conversation) bool { return c.Request == nil || b.fits(c.Request, id, now) })
	})
}

// turnTime bounds how long a turn that has come is expected to be kept: after that its answer has failed.
const turnTime = time.Minute

// turning reports whether a turn of a held conversation has come that the book does not keep yet.
func (c *Conversation) turning(now time.Time) bool {
	return c.asked.After(c.Last) && now.Sub(c.asked) < turnTime
}

// Leave returns the conversations to move away from a worker, or from all ranks of an address, in the order in which to
// move them. It holds them there until each is moved or Release is called. Those of other routers are among them.
func (b *Book) Leave(worker string, now time.Time) []*Conversation {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*Conversation
	for _, first := range []*Conversation{b.order.First, b.theirs.First} {
		for c := first; c != nil; c = c.order.Next {
			if c.Worker == worker || strings.HasPrefix(c.Worker, worker+"#") {
				all = append(all, c)
			}
		}
	}
	all = Order(all, func(c *Conversation) *Talk { return &c.Talk }, now)
	for _, c := range all {
		b.hold(c, held)
	}
	return all
}

// enough is the part of its share with which a worker that has come gets no more conversations: what it has goes up and
// down.
const enough = .8

// Gain returns conversations of the other workers to move to one that has come, so that it has its share of them:
// those that take the least time. It holds them as Leave does. Of coming, those that are held count as its own. It
// returns none if the worker has enough, nor while conversations move away from a worker that leaves: they fill it too.
func (b *Book) Gain(worker string, coming []*Conversation, now time.Time) (all []*Conversation) {
	talks, workers := b.live(now), b.Takers(now)
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range coming {
		if c.stays == held && c.GoesOn(now) >= probable {
			talks[worker]++
		}
	}
	sum, n := 0, max(1, len(workers))
	for _, id := range workers {
		sum += talks[id]
	}
	least, share := sum/n, (2*sum+n)/(2*n) // rounded down, and to the nearest
	if float64(talks[worker]) >= enough*float64(share) || !slices.Contains(workers, worker) {
		return nil
	}
	for c := b.order.First; c != nil; c = c.order.Next {
		takes := slices.Contains(workers, c.Worker)
		if c.stays == held && !takes {
			return nil
		}
		if c.stays == free && takes && b.fits(c.Request, worker, now) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, shorter)
	all = slices.DeleteFunc(all, func(c *Conversation) bool {
		if c.GoesOn(now) < probable || talks[worker] >= share || talks[c.Worker] <= max(least, talks[worker]+1) {
			return true
		}
		talks[worker]++
		talks[c.Worker]--
		return false
	})
	for _, c := range all {
		b.hold(c, held)
	}
	return all
}

// shorter compares two conversations by how long it takes to move them.
func shorter(a, b *Conversation) int { return cmp.Compare(a.Tokens, b.Tokens) }

// live returns how many conversations that probably go on each worker has, without those that are to move away.
func (b *Book) live(now time.Time) map[string]int {
	b.mu.Lock()
	defer b.mu.Unlock()
	talks := map[string]int{}
	for c := b.order.First; c != nil; c = c.order.Next {
		if c.stays != held && c.GoesOn(now) >= probable {
			talks[c.Worker]++
		}
	}
	return talks
}

// Next returns the last request of a conversation that Leave returned, and where it is; nil if it needs no move any
// more: it has ended, or another worker has answered its next turn.
func (b *Book) Next(c *Conversation) (r *Request, at string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.stays != held {
		return nil, ""
	}
	return c.Request, c.Worker
}

// Moved records that another worker holds the prompt of r, which Next returned; "" = the move has failed. It returns
// false if r is not the conversation's last request any more, and the worker that leaves has answered a later one. The
// next turn goes where the conversation has moved.
func (b *Book) Moved(c *Conversation, r *Request, to string, way Way) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c.stays == held && c.Request != r && to != "" {
		return false
	}
	here := c.stays == held && c.Request == r // else its next turn or the rest of its answer has gone elsewhere
	if c.stays == held {
		b.hold(c, free)
	}
	if to == "" {
		b.counts.Failed++
		return true
	}
	b.counts.Moved++
	b.counts.TokensMoved += c.Tokens
	c.used, c.bytes = false, b.bytes(r)
	b.counts.BytesMoved += c.bytes
	if way == Load {
		b.counts.TokensLoaded += c.Tokens
	}
	if here {
		c.moved = true
		b.arrive(c, to)
	}
	return true
}

// arrive has the next turn of a conversation go to the worker that has it now. The caller holds b.mu.
func (b *Book) arrive(c *Conversation, worker string) {
	c.Worker = worker
	b.hold(c, arrived)
	b.arrivals = append(b.arrivals, c)
}

// put records that another worker has a conversation now. If it was held, the next turn goes there. The caller holds
// b.mu.
func (b *Book) put(c *Conversation, worker string) {
	c.moved = false
	if c.stays == free { // also if this router has not seen yet that the old worker leaves
		c.Worker = worker
		return
	}
	b.arrive(c, worker)
}

// GoesOn records that another worker goes on with the answer to the last prompt of a conversation, which begins with
// these hashes. So it has more of it than any to which the prompt has been moved, or is just being moved.
func (b *Book) GoesOn(hashes []uint64, worker string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.find(hashes); c != nil {
		b.put(c, worker)
	}
}

// Release lets the next turns of conversations that have not been moved go to any worker.
func (b *Book) Release(all []*Conversation) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range all {
		if c.stays == held {
			b.hold(c, free)
		}
	}
}

// bytes returns how many bytes the KV of a prompt has, 0 if that is not known.
func (b *Book) bytes(r *Request) int {
	if b.Token == nil {
		return 0
	}
	return int(b.Token(r.Served) * float64(r.tokens))
}

// used returns how many of the conversations have had their next turn where they were moved to.
func (b *Book) used(all []*Conversation) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range all {
		if c.used {
			n++
		}
	}
	return n
}

// spent records how long a request of a move took.
func (b *Book) spent(way Way, took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts.Took[way] += took
}

// Counts returns what has become of conversations.
func (b *Book) Counts() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.counts
}
