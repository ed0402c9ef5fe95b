package relocate

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Wish is what a strategy asks to be done with the cache of a conversation. Its zero value is none.
type Wish struct {
	What    Want
	To      string        // of Prefetch and Copy: a worker
	For     time.Duration // of Keep: for so long; of Prefetch: so long after the answer
	Share   float64       // of Copy: of the prompt, from its beginning
	Session string        // of Drop: its name, of the same tenant; "" = the conversation itself
}

// Want is a kind of wish.
type Want uint8

// The kinds, as in sdk/abi.
const (
	Keep Want = iota
	Drop
	Prefetch
	Copy
)

// Ends reports whether the conversation itself has ended.
func (w Wish) Ends() bool { return w.What == Drop && w.Session == "" }

// String describes the wish for an operator.
func (w Wish) String() string {
	switch w.What {
	case Keep:
		return fmt.Sprintf("keep for %v", w.For)
	case Drop:
		if w.Session != "" {
			return "drop another session"
		}
		return "drop"
	case Prefetch:
		return fmt.Sprintf("prefetch at %s in %v", w.To, w.For)
	}
	return fmt.Sprintf("copy %.0f %% to %s", 100*w.Share, w.To)
}

const (
	// mostTasks and mostOfKey bound the tasks that wait, of a pool and of one key in it.
	mostTasks, mostOfKey = 1024, 32

	// longestKeep bounds for how long one turn has its conversation kept.
	longestKeep = 10 * time.Minute

	// refresh is how often a kept conversation is sent to its worker.
	refresh = 15 * time.Second

	// mostOfPiece bounds how long a piece is waited for, if nobody says what has become of it.
	mostOfPiece = 5 * time.Minute

	// wishRest is the pause of a worker after a piece of a wish, as a multiple of the time that it took.
	wishRest = 3
)

// Outcome is what has become of a wish.
type Outcome int

// The outcomes.
const (
	Refused Outcome = iota // for want of the conversation, or by a bound
	Fulfilled
	Failed // the worker did not take it, or what was to be kept was lost
	outcomes
)

// Task is a wish that is to be fulfilled: pieces of the conversation's last prompt, for one worker.
type Task struct {
	of        *Conversation
	request   *Request // a next turn has another one, and ends the task
	key       string   // of the caller
	what      Want
	to        string
	at, until time.Time
	tokens    int
	done      int // tokens of the pieces so far
	pace      float64
	busy      bool // a piece is under way
	over      bool
}

// Wish takes the wishes for the conversation of a turn that the book keeps; nil = it keeps none of that turn. It
// returns for each what becomes of it, in words.
func (b *Book) Wish(t *Turn, wishes []Wish, now time.Time) (said []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range wishes {
		w := &wishes[i]
		why := b.take(t, w, now)
		said = append(said, w.String()+why)
		if why != "" {
			b.counts.Wishes[Refused]++
		}
	}
	return said
}

// take makes a task of a wish. It returns why not, in words. The caller holds b.mu.
func (b *Book) take(t *Turn, w *Wish, now time.Time) string {
	if t == nil {
		return ": not done, the router does not keep this request (hand_over_bytes)"
	}
	if w.What == Drop {
		if w.Session != "" && !b.drop(w.Session, t.Request) {
			return ": not done, no conversation of that name is kept"
		}
		return ""
	}
	c := b.find(t.Hashes)
	if c == nil || c.Request != t.Request {
		return ": not done, the router does not keep this request (hand_over_bytes)"
	}
	task := &Task{of: c, request: c.Request, what: w.What, to: w.To, at: now, tokens: c.Tokens, pace: startPace}
	if c.Request.Caller != nil {
		task.key = c.Request.Caller.Name
	}
	switch w.What {
	case Keep:
		task.to, task.until = c.Worker, now.Add(min(w.For, longestKeep))
		task.at = now.Add(min(w.For/2, refresh))
	case Prefetch:
		task.at = now.Add(min(w.For, longestKeep))
	case Copy:
		task.tokens = int(w.Share * float64(c.Tokens))
	}
	if w.To != "" && !b.takes(w.To, now) {
		return ": not done, the worker takes no requests now"
	}
	if w.To != "" && !b.fits(c.Request, w.To, now) {
		return ": not done, the conversation keeps to other weights than the worker's"
	}
	b.tasks = slices.DeleteFunc(b.tasks, b.isOver)
	theirs := 0
	for _, other := range b.tasks {
		if other.key == task.key {
			theirs++
		}
	}
	switch {
	case theirs >= mostOfKey:
		return fmt.Sprintf(": not done, %d of the same key wait already", theirs)
	case len(b.tasks) >= mostTasks:
		return fmt.Sprintf(": not done, %d of the pool wait already", len(b.tasks))
	}
	b.tasks = append(b.tasks, task)
	return ""
}

// drop ends the conversation that a client of the same tenant calls so, and reports whether there is one. The caller
// holds b.mu.
func (b *Book) drop(name string, by *Request) bool {
	sought := by.Named
	sought.ID = name
	for c := b.order.First; c != nil; c = c.order.Next {
		if c.Request.Named == sought {
			b.remove(c)
			return true
		}
	}
	return false
}

// isOver reports whether a task has nothing to do any more. The caller holds b.mu.
func (b *Book) isOver(t *Task) bool {
	return t.over || b.tips[t.of.tip] != t.of || t.of.Request != t.request
}

// Wished reports whether a task waits. It is called once a second.
func (b *Book) Wished(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(now)
	return len(b.tasks) > 0
}

// Due returns the next piece of a wish, and the task that it is of. There is one at a time to each worker, and a pause
// after it. soon reports whether there may be another one before long.
func (b *Book) Due(now time.Time) (t *Task, m *Move, soon bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tasks = slices.DeleteFunc(b.tasks, b.isOver)
	maps.DeleteFunc(b.rests, func(_ string, until time.Time) bool { return !until.After(now) })
	for _, t := range b.tasks {
		if t.busy || t.at.After(now) {
			soon = soon || t.busy
			continue
		}
		if m := b.piece(t, now); m != nil {
			if _, rests := b.rests[m.To]; !rests {
				t.busy, b.rests[m.To] = true, now.Add(mostOfPiece)
				return t, m, true
			}
			soon = true
		}
	}
	return nil, nil, soon
}

// piece returns the next piece of a task, nil if it has none now. If the worker of a Prefetch or Copy drains, sleeps,
// has left or got other weights since the wish, the task has failed. The caller holds b.mu.
func (b *Book) piece(t *Task, now time.Time) *Move {
	if t.what == Keep {
		t.to = t.of.Worker // a hand-over may have moved it
	}
	switch takes := b.takes(t.to, now) && b.fits(t.request, t.to, now); {
	case !takes && t.what == Keep: // a hand-over may move it
		t.at = now.Add(refresh)
		return nil
	case !takes:
		t.over = true
		b.counts.Wishes[Failed]++
		return nil
	}
	m := &Move{Request: t.request, From: t.of.Worker, To: t.to, Tokens: t.tokens, Held: t.what == Keep}
	if t.what != Keep { // what is kept is in the cache
		m.Tokens = min(t.tokens, t.done+max(leastPiece, int(t.pace*pieceTime.Seconds())))
	}
	m.Whole = m.Tokens >= t.request.tokens
	return m
}

// Taken is who has got a piece of a task.
type Taken struct {
	By     string // "" = none
	Cached int    // tokens of it that the worker had
	Took   time.Duration
}

// Did records what has become of a piece.
func (b *Book) Did(t *Task, m *Move, by Taken, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t.busy, b.rests[m.To] = false, now.Add(wishRest*by.Took)
	b.counts.Took[Compute] += by.Took
	if n := m.Tokens - t.done; t.done > 0 && by.Took > 0 {
		t.pace += (float64(n)/by.Took.Seconds() - t.pace) / 4
	}
	t.done = m.Tokens
	switch {
	case by.By != t.to, t.what == Keep && by.Cached < m.Tokens/2: // it was lost, and is not computed once more
		t.over = true
		b.counts.Wishes[Failed]++
	case t.done < t.tokens:
	case t.what == Keep && now.Add(refresh).Before(t.until):
		t.at, t.done = now.Add(refresh), 0
	default:
		t.over = true
		b.counts.Wishes[Fulfilled]++
	}
}
