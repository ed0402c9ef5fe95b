// Package zmqpub has a PUB socket of ZeroMQ: simulated workers and tests publish KV events by it.
package zmqpub

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/bounded"
	"github.com/warmpath/warmpath/cache/zmtp"
)

// Publisher is a PUB: each message goes to every subscriber that wants its first frame. It never waits for one: a
// subscriber whose queue is full misses the message, as with libzmq's high-water mark.
type Publisher struct {
	config zmtp.Config
	queue  int // messages that it keeps for a slow subscriber

	mu      sync.Mutex // guards peers
	peers   map[*subscriber]struct{}
	dropped atomic.Uint64
}

// subscriber is one connected SUB.
type subscriber struct {
	conn  *zmtp.Conn
	queue bounded.Queue[[][]byte]

	mu     sync.Mutex // guards topics
	topics [][]byte
}

// What a SUB may subscribe to.
const (
	maxTopics     = 64
	maxTopicBytes = 1024
)

// New makes a Publisher without a socket; Listen and Connect give it some. It keeps so many messages for a slow
// subscriber.
func New(c zmtp.Config, queue int) *Publisher {
	c.Kind = zmtp.PUB
	return &Publisher{config: c, queue: queue, peers: map[*subscriber]struct{}{}}
}

// Listen accepts subscribers at addr until ctx ends.
func (p *Publisher) Listen(ctx context.Context, addr string) (*zmtp.Listener, error) {
	return zmtp.Listen(ctx, addr, p.config, p.serve)
}

// connectPause is how long Connect waits before it dials again.
const connectPause = 100 * time.Millisecond

// Connect dials a SUB that listens, again and again, until ctx ends.
func (p *Publisher) Connect(ctx context.Context, addr string) {
	for ctx.Err() == nil {
		c, err := zmtp.Dial(ctx, addr, p.config)
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
func (p *Publisher) serve(c *zmtp.Conn) {
	s := &subscriber{conn: c, queue: make(bounded.Queue[[][]byte], p.queue)}
	p.mu.Lock()
	p.peers[s] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.peers, s)
		p.mu.Unlock()
	}()
	c.OnCommand(func(name string, body []byte) error {
		switch name {
		case "SUBSCRIBE":
			return s.subscribe(body)
		case "CANCEL":
			s.cancel(body)
		}
		return nil
	})
	var writing sync.WaitGroup
	writing.Go(s.write)
	defer writing.Wait()
	defer c.Close()
	for {
		m, err := c.Recv()
		if err != nil {
			return
		}
		if s.message(m) != nil {
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
		return fmt.Errorf("zmqpub: over %d subscriptions, or one of over %d bytes", maxTopics, maxTopicBytes)
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

// write sends what is queued, some of it at once, until the connection ends.
func (s *subscriber) write() {
	const batch = 64
	for {
		select {
		case <-s.conn.Done():
			return
		case m := <-s.queue:
			if s.conn.SendAll(append([][][]byte{m}, slices.Collect(s.queue.Waiting(batch-1))...)...) != nil {
				return
			}
		}
	}
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
