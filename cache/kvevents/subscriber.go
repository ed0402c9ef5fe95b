package kvevents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bounded"
	"github.com/warmpath/warmpath/cache/parts/quota"
	"github.com/warmpath/warmpath/cache/zmtp"
)

// Config is what a Subscriber follows, and whom it serves.
type Config struct {
	Endpoint string // of the publisher, tcp://HOST:PORT or ipc://PATH; "" = it dials us, see Serve
	Replay   string // of its replay socket; "" = none: a gap and each new connection cost the view
	Sink     Sink
	OnState  func(State)  // called for each change, in the order of the sink's calls; may be nil
	Log      *slog.Logger // with the worker's name in it; nil = none
}

// Subscriber follows the events of one worker, or of one data-parallel rank.
type Subscriber struct {
	config Config
	follow *follower
	dial   func(ctx context.Context, addr string, c zmtp.Config) (link, error) // tests have another
	asks   bounded.Queue[func(context.Context)]
	logged bool // that it cannot connect
}

// link is a connection; a *zmtp.Conn is one.
type link interface {
	Recv() ([][]byte, error)
	Send(frames ...[]byte) error
	Close() error
}

// Times of a Subscriber.
const (
	firstRetry   = 100 * time.Millisecond // after a connection was lost or refused, doubled up to longestRetry
	longestRetry = time.Second            // a worker that is back is exact again within two
	heartbeat    = 10 * time.Second
	firstVerify  = time.Second      // after a connection or an event: was the last one that came really the last?
	nextVerify   = 30 * time.Second // the same, as long as none comes
	replayTime   = 20 * time.Second // for a whole replay: 10,000 batches take a publisher a second
	replaySilent = 5 * time.Second  // for one answer: a publisher answers between two steps of its engine
	forgetAfter  = time.Minute      // without a connection
)

// Limits of what a worker may send. An event of a prompt of 1M tokens has 6 MB.
const maxFrame = 16 << 20

// sharedBytes bounds the messages that all workers together have sent in part, or that wait to be decoded.
var sharedBytes = quota.New(4 * maxFrame)

// limits are those of both connections.
func limits(kind zmtp.Kind) zmtp.Config {
	return zmtp.Config{Kind: kind, MaxFrame: maxFrame, MaxMessage: maxFrame, MaxFrames: 8, Heartbeat: heartbeat,
		Held: sharedBytes}
}

// SubscribeConfig is what a Listener for workers that dial us is made of.
func SubscribeConfig() zmtp.Config {
	c := limits(zmtp.SUB)
	c.Subscribe = []string{""}
	return c
}

// New makes a Subscriber that does nothing yet.
func New(c Config) *Subscriber {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	s := &Subscriber{config: c, asks: make(bounded.Queue[func(context.Context)], 4)}
	s.dial = func(ctx context.Context, addr string, c zmtp.Config) (link, error) { return zmtp.Dial(ctx, addr, c) }
	var ask asker
	if c.Replay != "" {
		ask = s.askReplay
	}
	s.follow = newFollower(c.Sink, ask, c.Log)
	if c.OnState != nil {
		s.follow.onState = c.OnState
	}
	return s
}

// Stats returns what is known of the source.
func (s *Subscriber) Stats() Stats { return s.follow.Stats() }

// Run dials Endpoint and follows it, again and again, until ctx ends.
func (s *Subscriber) Run(ctx context.Context) {
	wait := firstRetry
	lost := time.Now()
	for ctx.Err() == nil {
		l, err := s.dial(ctx, s.config.Endpoint, SubscribeConfig())
		if err == nil {
			began := time.Now()
			err = s.serve(ctx, l, nil)
			lost = time.Now()
			if lost.Sub(began) > longestRetry {
				wait = firstRetry
			}
		}
		if ctx.Err() != nil {
			return
		}
		s.disconnected(err, time.Since(lost))
		timer := time.NewTimer(wait - time.Duration(rand.Int64N(int64(wait)/5)))
		select {
		case <-ctx.Done():
		case do := <-s.asks: // with no connection there is nobody to ask
			do(ctx)
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, longestRetry)
	}
}

// Serve follows a publisher that has dialled us until the connection ends. first is a message that was read off it, to
// learn who it is; it may be nil. One connection of a source at a time.
func (s *Subscriber) Serve(ctx context.Context, l *zmtp.Conn, first [][]byte) {
	s.disconnected(s.serve(ctx, l, first), 0)
}

// disconnected notes that there is no connection, and logs the first time.
func (s *Subscriber) disconnected(err error, since time.Duration) {
	f := s.follow
	f.change(func(st *Stats) { st.Problem = err.Error() })
	switch st := f.Stats(); {
	case st.State == Never:
		if !s.logged {
			s.logged = true
			s.config.Log.Warn("the worker's KV events cannot be had: it is chosen by routed history until then; "+
				"check kv_events, and endpoint in the worker's --kv-events-config", "endpoint", s.config.Endpoint, "error", err)
		}
	case st.Connected:
		f.change(func(st *Stats) { st.Connected = false })
		f.enter(Lost)
		f.logLine(slog.LevelInfo, "the connection for the worker's KV events ended", "endpoint", s.config.Endpoint,
			"error", err)
	case since > forgetAfter && f.ledger.next > 0:
		f.restart()
		f.enter(Lost)
	}
}

// serve follows one connection until it ends, and returns why.
func (s *Subscriber) serve(ctx context.Context, l link, first [][]byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q := newQueue()
	read := make(chan struct{})
	defer func() {
		l.Close()
		q.end(context.Canceled)
		<-read
	}()
	go func() {
		defer close(read)
		s.read(l, q, first)
	}()
	f := s.follow
	f.change(func(st *Stats) {
		st.Connected = true
		st.Problem = ""
		st.Connections++
	})
	f.connected(ctx)
	s.logged = false
	f.logLine(slog.LevelInfo, "connected for the worker's KV events", "endpoint", s.config.Endpoint,
		"state", f.state().String(), "batches", f.Stats().Replayed)
	return s.loop(ctx, q)
}

// read queues what comes until the connection or the queue ends.
func (s *Subscriber) read(l link, q *queue, frames [][]byte) {
	for {
		if frames != nil {
			topic, seq, payload, ok := splitMessage(frames)
			if !ok || seq == endOfReplay {
				s.follow.change(func(st *Stats) { st.Dropped++ })
			} else if !q.put(topic, seq, payload) {
				return
			}
		}
		var err error
		frames, err = l.Recv()
		if err != nil {
			q.end(err)
			return
		}
	}
}

// loop applies what is queued, and does what else is to be done between.
func (s *Subscriber) loop(ctx context.Context, q *queue) error {
	f := s.follow
	var m message
	idle := time.NewTimer(firstVerify)
	defer idle.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case do := <-s.asks:
			do(ctx)
		case <-idle.C:
			idle.Reset(f.nextLook(f.look(ctx)))
		case <-q.filled:
			ok, err := q.take(&m)
			if !ok && err != nil {
				return err
			}
			if ok {
				f.note(m.topic)
				f.message(ctx, m.seq, m.payload)
				f.queued(q.waiting())
				idle.Reset(f.nextLook(firstVerify))
			}
		}
	}
}

// look does what is due at a source that is silent: a pause or a wait that is over, or asking whether the last event
// was the last. It returns when to ask next: soon where one had been missed, as the next may be.
func (f *follower) look(ctx context.Context) time.Duration {
	applied := f.ledger.next
	f.looked = time.Now()
	if !f.patient.IsZero() || f.again {
		f.resume(ctx)
	} else if f.ask != nil {
		f.verify(ctx)
		f.settle()
	}
	if f.ledger.next != applied {
		return firstVerify
	}
	return nextVerify
}

// nextLook returns how long a silent source may go unasked: until a pause or a wait is over, else for so long.
func (f *follower) nextLook(quiet time.Duration) time.Duration {
	const least = 10 * time.Millisecond
	switch {
	case !f.patient.IsZero():
		return max(least, time.Until(f.patient))
	case f.again && f.ask != nil:
		return max(least, time.Until(f.retryAt))
	}
	return quiet - time.Duration(rand.Int64N(int64(quiet)/5))
}

// Doubt makes the Subscriber check whether the worker's process is still the same, after a sign that it may not be.
// Without a replay socket the check clears what is known of the worker. So it is then made only if the connection is
// older than age: the end of a process ends its connections, and the Subscriber would have seen that by then.
func (s *Subscriber) Doubt(age time.Duration) {
	s.asks.Put(func(ctx context.Context) {
		f := s.follow
		st := f.Stats()
		switch {
		case !st.Connected:
		case f.ask != nil:
			f.verify(ctx)
			f.settle()
		case time.Since(st.Since) > age && f.ledger.next > 0:
			f.restart()
			f.settle()
		}
	})
}

// Served has the Subscriber ask whether the last event was the last, unless one has just come: the worker has answered
// requests, so there may be more.
func (s *Subscriber) Served() {
	s.asks.Put(func(ctx context.Context) {
		f := s.follow
		if f.Stats().Connected && time.Since(f.looked) >= firstVerify/2 {
			f.look(ctx)
		}
	})
}

// Cleared clears the view at once: the worker's cache was reset. Its own event of that comes with its next store only.
func (s *Subscriber) Cleared() {
	s.asks.Put(func(context.Context) {
		s.follow.Clear()
		if s.follow.Stats().Connected {
			s.follow.settle()
		}
	})
}

// askReplay is the asker over the network.
func (s *Subscriber) askReplay(ctx context.Context, from uint64, each func(uint64, []byte) bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, replayTime, errLongReplay)
	defer cancel()
	l, err := s.dial(ctx, s.config.Replay, limits(zmtp.DEALER))
	if err != nil {
		return fmt.Errorf("replay socket %s: %w", s.config.Replay, err)
	}
	defer l.Close()
	if err := l.Send(question(from)...); err != nil {
		return fmt.Errorf("replay socket %s: %w", s.config.Replay, err)
	}
	silent := time.AfterFunc(replaySilent, func() { l.Close() })
	defer silent.Stop()
	for {
		frames, err := l.Recv()
		if err != nil {
			if ctx.Err() == nil && !silent.Stop() {
				err = errSilentReplay
			}
			return fmt.Errorf("replay socket %s: %w", s.config.Replay, err)
		}
		silent.Reset(replaySilent)
		seq, payload, ok := splitAnswer(frames)
		switch {
		case !ok:
			return fmt.Errorf("replay socket %s: %w", s.config.Replay, errAnswer)
		case seq == endOfReplay:
			return nil
		case !each(seq, payload):
			return nil
		}
	}
}

// Errors of a replay.
var (
	errLongReplay   = errors.New("the replay takes too long")
	errSilentReplay = errors.New("no answer: is this replay_endpoint of --kv-events-config?")
	errAnswer       = errors.New("the answer is no replay: is this replay_endpoint of --kv-events-config?")
)
