package relocate

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/warmpath/warmpath/sdk/abi"
)

const (
	// pieceTime is about how long one request of a move takes: a turn of a client that comes to the same worker waits
	// for half of it on average. Engines compute a prompt of 10,000 tokens in one step, and others wait for that.
	pieceTime = 250 * time.Millisecond

	// alone is how many times pieceTime is added to a piece for a worker that has come and has no conversations: few
	// clients wait there. The addition falls to 0 as the worker gets the mean number of conversations. Moves away from
	// a worker that leaves add pieceTime once.
	alone = 3

	// leastPiece bounds the pieces from below, in tokens: each costs a step of the engine beside its own tokens.
	leastPiece = 256

	// startPace is the prefill of a worker in tokens a second before one has been measured.
	startPace = 4000

	// rest is the pause after a piece, as a multiple of the time that it took, at a worker that has its share of the
	// conversations. It is shorter at one that has fewer: nobody waits there.
	rest = 1

	// slack is by how much the number of a worker's conversations may be over the mean at the end of a plan's time. At
	// its begin it may not be: a worker that has come lately gets those of the one that leaves, as nobody waits there.
	slack = 2

	// calm bounds how long a piece waits for a moment in which no client waits for a first byte at its worker. The engine
	// would compute both prompts in one step. What moves later has its next turn there less often: with 2 s a fifth of the
	// tokens are moved in vain.
	calm = time.Second

	// again is how soon a plan is asked again that waits for something.
	again = 50 * time.Millisecond
)

// Plan is the moves of conversations away from one worker: which is next, to which worker, how much of its prompt, and
// when. It reads no clock and sends nothing, so that the lab runs it in virtual time. It is safe for concurrent use.
type Plan struct {
	book        *Book
	from, until time.Time
	only        string // the worker that all move to; "" = to any but theirs

	mu      sync.Mutex                // guards all below
	all     []*Conversation           // that are held, or were
	own     int                       // of all, that no other router moves, when they were held
	left    []*Conversation           // of all, that no target has begun
	values  map[*Conversation]float64 // that the strategy gives their moves; nil = it gives none
	targets []*target                 // to each worker, the one with the fewest conversations first
	ordered time.Time                 // when the targets were
	mean    float64                   // conversations of a worker
	pace    float64                   // tokens a second, as measured
	said    Progress

	loaded, computed int // prompts that the tier was to have
}

// Progress is what has become of a plan's conversations.
type Progress struct {
	Moved, Failed int
	Loaded        int // of those that moved: from the tier that all workers share
	Used          int // of those that moved: their next turn has come to the new worker
	Tokens, Bytes int // of the prompts that moved, and of their KV; 0 bytes = not known
}

// target is the moves to one worker, one at a time.
type target struct {
	to    string
	talks int // conversations that are there
	move  Move
	busy  bool      // a piece is under way
	free  time.Time // when the next piece may begin
	gone  bool      // the worker takes no requests any more
}

// Move is one piece of a move: the beginning of a conversation's last prompt, or all of it.
type Move struct {
	*Request
	From   string // the worker that has the conversation
	To     string // the worker that had better get it
	Tokens int    // of the prompt to send
	Whole  bool   // all of it
	Held   bool   // only if To still holds it: nothing is to be computed
	Way    Way    // how the worker gets it; of Store, To is the worker that has the conversation

	talk   *Conversation
	done   int  // tokens of the pieces before
	had    bool // the worker that has come had the last of them cached
	uncut  bool // a piece has failed: the rest is sent at once
	target *target
}

// Share returns how much of the prompt the piece is, from 0 to 1.
func (m *Move) Share() float64 { return float64(m.Tokens) / float64(max(1, m.Request.tokens)) }

// Plan returns the moves away from a worker that leaves at an instant. The conversations are held at the worker until
// each is moved or the plan ends. The next turn of one that has moved goes to its new worker.
func (b *Book) Plan(worker string, now, until time.Time) *Plan {
	return b.plan(b.Leave(worker, now), now, until)
}

// JoinTime is for how long conversations move to a worker that has come.
const JoinTime = time.Minute

// Join is Plan for the moves to a worker that has come, nil if there are none now. For JoinTime the plan has
// more of them while the worker has not enough: most conversations are silent now, or have not begun.
func (b *Book) Join(worker string, now time.Time) *Plan {
	all := b.Gain(worker, nil, now)
	if len(all) == 0 {
		return nil
	}
	p := b.plan(all, now, now.Add(JoinTime))
	p.only = worker
	return p
}

// Joins reports whether the moves are to a worker that has come.
func (p *Plan) Joins() bool { return p.only != "" }

func (b *Book) plan(all []*Conversation, now, until time.Time) *Plan {
	p := &Plan{book: b, all: all, left: slices.Clone(all), pace: startPace, from: now, until: until}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range all {
		if c.Request != nil {
			p.own++
		}
	}
	return p
}

// orderEvery is how often a plan looks at the workers.
const orderEvery = time.Second

// order finds the workers, and how many conversations each has.
func (p *Plan) order(now time.Time) {
	if now.Sub(p.ordered) < orderEvery {
		return
	}
	p.ordered = now
	if p.Joins() && p.said.Failed <= p.said.Moved { // else the worker does not take them
		more := p.book.Gain(p.only, p.all, now)
		p.all, p.left, p.own = append(p.all, more...), append(p.left, more...), p.own+len(more)
	}
	p.rank(now)
	for _, l := range p.targets {
		l.gone = true
	}
	talks, workers := p.book.live(now), p.book.suited(p.all, now)
	p.mean = 0
	for _, id := range workers {
		i := slices.IndexFunc(p.targets, func(l *target) bool { return l.to == id })
		if i < 0 {
			i = len(p.targets)
			p.targets = append(p.targets, &target{to: id, free: now})
		}
		p.targets[i].gone, p.targets[i].talks = false, talks[id]
		p.mean += float64(talks[id]) / float64(len(workers))
	}
}

// Next returns the piece that is to be sent now; nil: after wait there may be one, and none ever if wait is 0.
func (p *Plan) Next(now time.Time) (m *Move, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.order(now)
	slices.SortStableFunc(p.targets, func(a, b *target) int { return cmp.Compare(a.talks, b.talks) })
	share := now.Sub(p.from).Seconds() / max(.001, p.until.Sub(p.from).Seconds())
	most := p.mean * (1 + slack*share)
	for _, l := range p.targets {
		if l.busy {
			wait = again
			continue
		}
		if l.gone && l.move.talk != nil { // what it has of the conversation is lost
			p.left = append(p.left, l.move.talk)
			l.move.talk = nil
		}
		if p.only != "" && l.to != p.only {
			continue
		}
		if l.move.talk == nil && !l.gone && float64(l.talks) <= most && !l.free.After(now) {
			l.move = Move{talk: p.take(l.to, now), To: l.to, target: l, Way: p.via()}
		}
		if l.move.talk == nil || l.free.After(now) {
			continue
		}
		if p.book.Prefills != nil && now.Sub(l.free) < calm && p.book.Prefills(l.to) {
			wait = again
			continue
		}
		l.move.Request, l.move.From = p.book.Next(l.move.talk)
		if l.move.Request == nil { // it has ended, or has its next turn elsewhere
			l.move.talk = nil
			wait = again
			continue
		}
		l.busy = true
		l.move.Tokens = l.move.done + p.piece(l)
		all := l.move.Request.tokens
		l.move.Whole = l.move.uncut || l.move.Way != Compute || l.move.Tokens+leastPiece > all
		if l.move.Whole {
			l.move.Tokens = all
		}
		piece := l.move
		if piece.Way == Store {
			piece.To = piece.From
		}
		return &piece, 0
	}
	if p.moves() || p.Joins() && now.Before(p.until) {
		wait = again // for a turn of one that is silent, or a worker
	}
	return nil, wait
}

// moves reports whether conversations move, or are to. The caller holds p.mu.
func (p *Plan) moves() bool {
	return len(p.left) > 0 || slices.ContainsFunc(p.targets, func(l *target) bool { return l.move.talk != nil })
}

// Idle reports whether the moves are to a worker that has come, which has enough now.
func (p *Plan) Idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.Joins() && !p.moves()
}

// piece returns how many tokens the next piece for a worker has more than the one before.
func (p *Plan) piece(l *target) int {
	longer := max(0, 1-float64(l.talks)/max(1, p.mean))
	if p.Joins() {
		longer *= alone
	}
	n := max(leastPiece, int(p.pace*pieceTime.Seconds()*(1+longer)))
	if l.move.had {
		return 2 * n
	}
	return n
}

// maxRanked bounds the conversations that a strategy ranks at a time.
const maxRanked = 1024

// rank has the strategy rank the moves that are left. It offers the conversations that most probably go on first.
func (p *Plan) rank(now time.Time) {
	p.values = nil
	if p.book.Rank == nil || len(p.left) == 0 {
		return
	}
	p.book.mu.Lock()
	ranked := slices.DeleteFunc(slices.Clone(p.left), func(c *Conversation) bool { return c.Request == nil })
	ranked = Order(ranked, func(c *Conversation) *Talk { return &c.Talk }, now)
	ranked = ranked[:min(len(ranked), maxRanked)]
	talks := make([]abi.Talk, len(ranked))
	for i, c := range ranked {
		t := &talks[i]
		*t = c.Request.Known
		t.Value, t.Tokens, t.Returns = c.worth(now), uint32(c.Tokens), float32(c.GoesOn(now))
		t.Silence, t.Gap = float32(now.Sub(c.Last).Seconds()), float32(c.Gap.Seconds())
	}
	p.book.mu.Unlock()
	if !p.book.Rank(talks) {
		return
	}
	p.values = make(map[*Conversation]float64, len(ranked))
	for i, c := range ranked {
		p.values[c] = talks[i].Value
	}
}

// worth returns the value of a move: the strategy's, or the conversation's own if it gives none.
func (p *Plan) worth(c *Conversation, now time.Time) float64 {
	if v, ok := p.values[c]; ok {
		return v
	}
	return c.worth(now)
}

// worth returns the value of moving a conversation now: the probability of a next turn, or 0 if it is too small.
func (t *Talk) worth(now time.Time) float64 {
	if p := t.GoesOn(now); p >= probable {
		return p
	}
	return 0
}

// take returns the conversation to begin with now at a worker, nil if there is none.
func (p *Plan) take(to string, now time.Time) *Conversation {
	p.book.mu.Lock()
	defer p.book.mu.Unlock()
	p.left = slices.DeleteFunc(p.left, func(c *Conversation) bool { return c.stays != held })
	p.left = Order(p.left, func(c *Conversation) *Talk { return &c.Talk }, now)
	if p.Joins() {
		slices.SortStableFunc(p.left, shorter)
	}
	slices.SortStableFunc(p.left, func(a, b *Conversation) int { return cmp.Compare(p.values[b], p.values[a]) })
	i := slices.IndexFunc(p.left, func(c *Conversation) bool {
		return c.Request != nil && p.worth(c, now) > 0 && !c.turning(now) && p.book.fits(c.Request, to, now)
	})
	if i < 0 {
		return nil
	}
	c := p.left[i]
	p.left = slices.Delete(p.left, i, i+1)
	return c
}

// rest returns the pause of this router after a piece: the others that move conversations to the worker have their
// pieces in it.
func (p *Plan) rest() float64 { return float64((1+rest)*max(1, p.book.Routers.Load()) - 1) }

// All returns how many conversations the plan is to move.
func (p *Plan) All() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own
}

// Moved records that a worker holds a piece, of which it had so many tokens cached; to = "": nobody has computed it. It
// reports whether the conversation has moved.
func (p *Plan) Moved(m *Move, to string, cached int, began, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := m.target
	took := now.Sub(began)
	if m.Way == Store && (to == "" || to == m.From) {
		l.busy, l.move.Way = false, Load // also if the worker has gone: the tier has what it wrote before
		p.book.spent(Store, took)
		return false
	}
	l.busy, l.free = false, now.Add(time.Duration(p.rest()*min(1, float64(l.talks)/max(1, p.mean))*float64(took)))
	if p.only != "" && to != p.only {
		to = ""
	}
	if n := m.Tokens - max(m.done, cached); to != "" && m.done > 0 && n >= leastPiece && took > 0 {
		p.pace += (float64(n)/took.Seconds() - p.pace) / 4
	}
	way := p.judge(m, cached)
	p.book.spent(way, took)
	switch {
	case !m.Whole && to == "":
		l.move.uncut = true
	case !m.Whole:
		l.move.had = p.Joins() && float64(cached-m.done) >= loaded*float64(m.Tokens-m.done)
		l.move.done, l.move.To = m.Tokens, to // another one, if that took no request of its kind
	default:
		l.move.talk = nil
		switch done := p.book.Moved(m.talk, m.Request, to, way); {
		case !done: // a turn has come to the worker that leaves meanwhile
			p.left = append(p.left, m.talk)
		case to == "":
			p.said.Failed++
		default:
			p.said.Moved++
			p.said.Tokens += m.Request.tokens
			p.said.Bytes += p.book.bytes(m.Request)
			if way == Load {
				p.said.Loaded++
			}
			l.talks++
			return true
		}
	}
	return false
}

// End lets the next turns of those that have not moved go to any worker, and returns what has become of all.
func (p *Plan) End() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.book.Release(p.all)
	p.left = nil
	p.said.Used = p.book.used(p.all)
	return p.said
}
