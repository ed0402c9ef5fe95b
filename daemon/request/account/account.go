package account

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/daemon/request/limit"
)

// What is one kind of thing that a request holds.
type What uint8

// What a request holds.
const (
	Worker  What = iota // a place at a worker
	Queue               // a place in a pool's queue
	Prefill             // a prefill at a worker of its own
	Memory              // bytes of the bodies that prefills send
	Adapter             // an adapter that a worker must not unload
	Ahead               // bytes of an answer that its client has not taken yet
	Job                 // a response in the background, a batch or a video that its worker still makes

	kinds = iota
)

// String returns the name of it in metrics.
func (w What) String() string {
	return [...]string{"worker_places", "queue_places", "prefills", "prefill_bytes", "adapters", "answer_bytes", "jobs"}[w]
}

// Books has the sums over all requests of a process. Its zero value is ready.
type Books struct {
	open  atomic.Int64
	leaks atomic.Int64
	sums  [kinds]atomic.Int64
}

// Sums are what all requests hold at a time.
type Sums struct {
	Open  int64 // accounts: requests whose work has not ended, also of clients that have left
	Leaks int64 // accounts that ended while something was held, since the start: each is a fault of the router
	Held  [kinds]int64
}

// Sums returns what all requests hold now.
func (b *Books) Sums() (s Sums) {
	s.Open, s.Leaks = b.open.Load(), b.leaks.Load()
	for i := range s.Held {
		s.Held[i] = b.sums[i].Load()
	}
	return s
}

// Account is what one request holds. A nil Account records nothing.
type Account struct {
	books *Books
	left  atomic.Bool // the client's request has ended
	front Front       // nil = none has memory beside

	beside int64 // bytes that the front holds beside the body

	mu      sync.Mutex // guards all below
	works   int        // under way
	readers int        // of these, which read the body
	spent   *limit.Spending
	body    Body // that the request has left here; nil = none
	held    [kinds]int64
}

// Body is the memory of a request's body.
type Body interface{ Free() }

// Work is one more thing that is done for a request. Its zero value has ended. It must not be copied.
type Work struct {
	of    atomic.Pointer[Account]
	reads bool // it reads the body
}

// Open begins an account with its first work, the client's request, which End ends. The account counts in the books
// until its last work has ended.
func (b *Books) Open() *Account {
	b.open.Add(1)
	return &Account{books: b, works: 1}
}

// End ends the client's request, once: the client has its answer, or has left.
func (a *Account) End(at time.Time) {
	if a != nil && !a.left.Swap(true) {
		a.end(false, at)
	}
}

// Front is the package that has read the request from its connection.
type Front interface {
	// Slim drops what is not needed while the request waits. It may be called more than once.
	Slim()
}

// From sets who has read the request, the bytes of its header, and the size of the buffer by which they were read.
func (a *Account) From(f Front, head, buffer int) {
	a.front, a.beside = f, int64(head+buffer)
}

// Held returns the bytes that a request holds beside its body while it waits: the header, and the buffer by which it
// was read.
func (a *Account) Held() int64 {
	if a == nil {
		return 0
	}
	return a.beside
}

// Slim drops what the client's request does not need while it waits.
func (a *Account) Slim() {
	if a != nil && a.front != nil {
		a.front.Slim()
	}
}

// Begin adds a work. reads: it reads the body, so that Keep leaves the memory until the work ends.
func (a *Account) Begin(w *Work, reads bool) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w.reads = reads
	a.works++
	if reads {
		a.readers++
	}
	w.of.Store(a)
}

// End ends the work, once. The last work of an account returns the key's place and corrects its tokens.
func (w *Work) End(at time.Time) {
	if a := w.of.Swap(nil); a != nil {
		a.end(w.reads, at)
	}
}

func (a *Account) end(reads bool, at time.Time) {
	a.mu.Lock()
	a.works--
	if reads {
		a.readers--
	}
	body := a.unread()
	var spent *limit.Spending
	var held [kinds]int64
	last := a.works == 0
	if last {
		spent, held = a.spent, a.held
		a.spent, a.held = nil, [kinds]int64{}
	}
	a.mu.Unlock()
	if body != nil {
		body.Free()
	}
	if last {
		spent.End(at) // without the lock: it may let another request of the key in
		a.books.close(held)
	}
}

// unread returns the body and drops it, if no work reads it now. The caller holds a.mu.
func (a *Account) unread() (b Body) {
	if a.readers == 0 {
		b, a.body = a.body, nil
	}
	return b
}

// Keep frees the memory of the body as soon as no work reads it: now, if none does.
func (a *Account) Keep(b Body) {
	if a != nil {
		a.mu.Lock()
		a.body = b
		b = a.unread()
		a.mu.Unlock()
	}
	if b != nil {
		b.Free()
	}
}

// Enter has the limits of the key let the request in, or returns why not. What it takes is returned when the last work
// ends. A request that is in stays in. A nil key has no limits.
func (a *Account) Enter(k *limit.Key, at time.Time) *limit.Refusal {
	if a.Spent().Limited() { // a call that opens a session sends a request of its own
		return nil
	}
	spent, refusal := k.Enter(at)
	a.mu.Lock()
	a.spent = spent
	a.mu.Unlock()
	return refusal
}

// Spent returns what the request takes of the limits of its key; nil = nothing.
func (a *Account) Spent() *limit.Spending {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.spent
}

// Sent records that a worker has the request: from here on it counts.
func (a *Account) Sent() {
	if a != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.spent.Sent()
	}
}

// Hold is the amount of one resource that a request holds. Its zero value holds nothing. It must not be copied.
type Hold struct {
	of   atomic.Pointer[Account]
	n    int32
	what What
}

// Take records that the request holds n of something, until h is released. What h held before is released.
func (a *Account) Take(h *Hold, what What, n int64) {
	h.Release()
	if a == nil || n == 0 {
		return
	}
	h.what, h.n = what, int32(min(n, math.MaxInt32))
	a.add(what, int64(h.n))
	h.of.Store(a)
}

// Release returns what h holds, once.
func (h *Hold) Release() {
	if a := h.of.Swap(nil); a != nil {
		a.add(h.what, -int64(h.n))
	}
}

func (a *Account) add(what What, n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.works > 0 { // else the books were corrected when the account ended
		a.held[what] += n
		a.books.sums[what].Add(n)
	}
}

// close subtracts an account from the sums, with everything that it still holds.
func (b *Books) close(held [kinds]int64) {
	for i, n := range held {
		if n != 0 {
			b.sums[i].Add(-n)
			b.leaks.Add(1)
		}
	}
	b.open.Add(-1)
}
