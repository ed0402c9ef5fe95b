package tokens

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/seldom"
)

// Config is what a Source may spend.
type Config struct {
	Budget     time.Duration // of a request's time, from its arrival, that its ids may take; 0 = only what is known
	CacheBytes int           // of the ids that are kept
	Learn      bool          // answers may be asked for their ids
}

// Meter counts what became of requests' wishes.
type Meter interface {
	// Tokens counts one.
	Tokens(pool, outcome string)
}

// Source finds the token ids of a pool's prompts. It is safe for concurrent use.
type Source struct {
	pool  string
	log   *slog.Logger
	meter Meter
	set   atomic.Pointer[Config]

	cache  *cache
	asker  asker
	trust  trust
	hinges hinges
	warned seldom.Once

	mu      sync.Mutex // guards flights and asked, and a flight's waiting and wanted
	flights map[digest]*flight
	asked   int // flights whose answer is awaited
}

// Parts is what a Source is made of.
type Parts struct {
	Pool  string
	Log   *slog.Logger
	Meter Meter
	Fleet Fleet
}

// New makes a Source that knows no text yet. Configure it before anything else is called.
func New(p Parts) *Source {
	s := &Source{pool: p.Pool, log: p.Log, meter: p.Meter, cache: newCache(0), flights: map[digest]*flight{}}
	slow := func() time.Duration { return s.set.Load().Budget }
	s.asker = asker{fleet: p.Fleet, log: p.Log, warned: &s.warned, slow: slow}
	return s
}

// Configure puts limits in force, at once.
func (s *Source) Configure(c Config) {
	s.set.Store(&c)
	s.cache.resize(c.CacheBytes)
}

// Request is one request that wants its ids.
type Request struct {
	*Question
	Body     []byte    // as the question was read from
	Arrived  time.Time // from which the budget counts
	Deadline time.Time // the client waits no longer; zero = not known
}

// IDs returns the engine's ids of the request's prompt, nil if they cannot be had in time. The ids must not be
// changed. ctx ends with the client.
func (s *Source) IDs(ctx context.Context, r Request) ([]uint32, Outcome) {
	ids, o := s.find(ctx, r)
	s.meter.Tokens(s.pool, string(o))
	return ids, o
}

func (s *Source) find(ctx context.Context, r Request) ([]uint32, Outcome) {
	q := r.Question
	switch {
	case q.Given != nil:
		return q.Given, Given
	case q.why != "":
		return nil, q.why
	case q.key == digest{}: // nothing was read
		return nil, Unsupported
	}
	if ids, ok := s.cache.get(q.key); ok {
		return ids, Cached
	}
	now := time.Now()
	end := r.Arrived.Add(s.set.Load().Budget)
	if !r.Deadline.IsZero() && r.Deadline.Before(end) {
		end = r.Deadline
	}
	if !end.After(now) {
		return nil, Late
	}
	f, o := s.join(q, r.Body)
	if f == nil {
		return nil, o
	}
	if s.asker.pace.of(f.size) > end.Sub(now) { // it goes on for the next request with this text
		s.leave(f, true)
		return nil, Late
	}
	t := time.NewTimer(end.Sub(now))
	defer t.Stop()
	select {
	case <-f.done:
		s.leave(f, false)
		return f.ids, f.outcome
	case <-t.C:
		s.leave(f, true)
		s.warned.Warn(s.log, "late", "a prompt's token ids took longer than pools.tokens.budget: such requests are "+
			"routed by their text", "budget", s.set.Load().Budget)
		return nil, Late
	case <-ctx.Done():
		s.leave(f, false)
		return nil, Gone
	}
}

// Bounds of what is asked for at a time.
const (
	maxFlights = 32
	longest    = 2 * time.Second // that an answer is awaited, by nobody at its end
)

var errGone = errors.New("tokens: nobody waits for the ids any more")

// flight is a question to a worker that all requests with one text share.
type flight struct {
	key     digest
	size    int // bytes that a worker is sent
	done    chan struct{}
	ids     []uint32 // set when done is closed
	outcome Outcome  // as ids
	waiting int      // requests
	wanted  bool     // by nobody, but for the next request with this text
	cancel  context.CancelCauseFunc
}

// join returns the flight for a question, a new one if there is none.
func (s *Source) join(q *Question, body []byte) (*flight, Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.flights[q.key]; f != nil {
		f.waiting++
		return f, ""
	}
	if s.asked >= maxFlights {
		return nil, Busy
	}
	if q.size > s.asker.maxLens.most(q.model) {
		return nil, TooLong
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	f := &flight{key: q.key, size: q.size, done: make(chan struct{}), waiting: 1, cancel: cancel}
	s.flights[q.key] = f
	s.asked++
	a, c := newQuery(q, body, s.trust.allows(q, time.Now())), (*chat)(nil)
	if a.tokenize != nil && a.body != nil {
		c = newChat(q, a.body)
		f.size = s.sizeOf(c, f.size)
	}
	go s.fly(ctx, f, a, c)
	return f, ""
}

// leave takes a request out of a flight. wanted is true if the ids are still of use. Unless they are, the last request
// to leave ends the flight.
func (s *Source) leave(f *flight, wanted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiting--
	f.wanted = f.wanted || wanted
	if f.waiting == 0 && !f.wanted { // after its end too: then there is nothing to cancel
		s.land(f)
		f.cancel(errGone)
	}
}

// land takes a flight out of those that a request can join. The caller holds s.mu.
func (s *Source) land(f *flight) {
	if s.flights[f.key] == f {
		delete(s.flights, f.key)
	}
}

// fly asks, and keeps what was learnt. c is nil if the text cannot be taken apart.
func (s *Source) fly(ctx context.Context, f *flight, a *query, c *chat) {
	ctx, stop := context.WithTimeout(ctx, longest)
	defer stop()
	defer f.cancel(nil)
	f.ids, f.outcome = s.search(ctx, a, c)
	if f.ids != nil {
		s.keep(f.key, c, f.ids)
	}
	s.mu.Lock()
	s.land(f)
	s.mu.Unlock()
	close(f.done)
	if f.ids != nil && c != nil {
		later, stop := context.WithTimeout(context.Background(), longest)
		defer stop()
		s.check(later, c, f.outcome, f.ids)
	}
	s.mu.Lock()
	s.asked--
	s.mu.Unlock()
}

// search asks for the end of a text, where the beginning is known, else for all of it.
func (s *Source) search(ctx context.Context, a *query, c *chat) ([]uint32, Outcome) {
	if c != nil {
		if ids, ok := s.extend(ctx, c); ok {
			return ids, Extended
		}
	}
	ids, err := s.asker.ask(ctx, a)
	if err != nil {
		return nil, outcomeOf(err)
	}
	return ids, Asked
}

func outcomeOf(err error) Outcome {
	switch err {
	case errRefused:
		return Refused
	case errNobody:
		return Nobody
	case errNoWay:
		return Unsupported
	case errTooLong:
		return TooLong
	case errGone:
		return Gone
	}
	return Failed
}
