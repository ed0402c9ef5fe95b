package zmtp

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bounded"
)

// Publisher is a PUB: each message goes to every subscriber that wants its first frame. It never waits for one: a
// subscriber whose queue is full misses the message, as with libzmq's high-water mark.
type Publisher struct {
	config Config

	mu      sync.Mutex // guards peers
	peers   map[*subscriber]struct{}
	dropped atomic.Uint64
}

// subscriber is one connected SUB.
type subscriber struct {
	conn  *Conn
	queue bounded.Queue[[][]byte]

	mu     sync.Mutex // guards topics
	topics [][]byte
}

// What a SUB may subscribe to.
const (
	maxTopics     = 64
	maxTopicBytes = 1024
)

// NewPublisher makes a Publisher without a socket; Listen and Connect give it some.
func NewPublisher(c Config) *Publisher {
	c.Kind = PUB
	return &Publisher{config: c.withDefaults(), peers: map[*subscriber]struct{}{}}
}

// Listen accepts subscribers at addr until ctx ends.
func (p *Publisher) Listen(ctx context.Context, addr string) (*Listener, error) {
	return Listen(ctx, addr, p.config, p.serve)
}

// connectPause is how long Connect waits before it dials again.
const connectPause = 100 * time.Millisecond

// Connect dials a SUB that listens, again and again, until ctx ends.
func (p *Publisher) Connect(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		c, err := Dial(ctx, addr, p.config)
		if err == nil {
			p.serve(c)
			c.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(connectPause):
		}
	}
}

// serve keeps one subscriber until its connection ends.
func (p *Publisher) serve(c *Conn) {
	s := &subscriber{conn: c, queue: make(bounded.Queue[[][]byte], p.config.Queue)}
	p.mu.Lock()
	p.peers[s] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.peers, s)
		p.mu.Unlock()
	}()
	c.in.command = func(name string, body []byte) error {
		switch name {
		case "SUBSCRIBE":
			return s.subscribe(body)
		case "CANCEL":
			s.cancel(body)
			return nil
		}
		return c.obey(name, body)
	}
	var writing sync.WaitGroup
	writing.Go(s.write)
	defer writing.Wait()
	defer c.Close()
	for {
		m, err := c.Recv()
		if err != nil {
			return
		}
		if err := s.message(m); err != nil {
			c.fail(err)
			return
		}
	}
}

// message takes the older form of a subscription: 01 and the prefix, or 00 to end one.
func (s *subscriber) message(m [][]byte) error {
	if len(m) != 1 || len(m[0]) == 0 || m[0][0] > 1 {
		return nil // a SUB has nothing else to send that concerns us
	}
	if m[0][0] == 1 {
		return s.subscribe(m[0][1:])
	}
	s.cancel(m[0][1:])
	return nil
}

func (s *subscriber) subscribe(topic []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.topics) == maxTopics || len(topic) > maxTopicBytes {
		return fmt.Errorf("zmtp: over %d subscriptions, or one of over %d bytes: %w", maxTopics, maxTopicBytes, ErrLimit)
	}
	s.topics = append(s.topics, bytes.Clone(topic))
	return nil
}

func (s *subscriber) cancel(topic []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, t := range s.topics {
		if bytes.Equal(t, topic) {
			s.topics = append(s.topics[:i], s.topics[i+1:]...)
			return
		}
	}
}

func (s *subscriber) wants(topic []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.topics {
		if bytes.HasPrefix(topic, t) {
			return true
		}
	}
	return false
}

// write sends what is queued, and flushes when nothing more is.
func (s *subscriber) write() {
	c := s.conn
	for {
		select {
		case <-c.ctx.Done():
			return
		case m := <-s.queue:
			if s.send(m) != nil {
				return
			}
		}
	}
}

// send writes m and what else is queued by now, up to a batch.
func (s *subscriber) send(m [][]byte) error {
	c := s.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.conn.SetWriteDeadline(time.Now().Add(c.config.Write))
	const batch = 64
	if err := c.put(m); err != nil {
		return c.fail(err)
	}
	for m := range s.queue.Waiting(batch - 1) {
		if err := c.put(m); err != nil {
			return c.fail(err)
		}
	}
	if err := c.out.Flush(); err != nil {
		return c.fail(err)
	}
	return nil
}

// Publish queues a message of one frame at least, the topic first. The frames must not be changed afterwards.
func (p *Publisher) Publish(frames ...[]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.peers {
		if s.wants(frames[0]) && !s.queue.Put(frames) {
			p.dropped.Add(1)
		}
	}
}

// Subscribers returns how many connected peers want the topic.
func (p *Publisher) Subscribers(topic string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for s := range p.peers {
		if s.wants([]byte(topic)) {
			n++
		}
	}
	return n
}

// Dropped returns how many messages found a full queue.
func (p *Publisher) Dropped() uint64 { return p.dropped.Load() }
