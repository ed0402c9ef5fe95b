package remote

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// news announces to the other daemons which values this one has put at the servers, so that their EXISTS finds these
// too. A Redis passes messages on by PUBLISH; a member of a pool sends them to each other member's door.
//
// A message is the sender's 26 characters, then for each value
//
//	0 length of the key, uint16  2 size, int64  10 end in Unix ms, int64, 0 = none  18 the key
//
// little-endian.
type news struct {
	servers *servers
	sender  string

	mu    sync.Mutex // guards batch
	batch []byte
}

const (
	newsEvery   = 20 * time.Millisecond
	maxNews     = 1 << 20 // bytes of a message; further values are left out
	senderBytes = 26
	newsHeader  = 18
)

// Channel is the Redis channel of the news.
const Channel = "warmpath:kv:news"

var errNews = errors.New("remote: the news is torn")

func newNews(s *servers) *news { return &news{servers: s, sender: rand.Text()[:senderBytes]} }

func (n *news) channel() string { return n.servers.prefix + Channel }

// tell queues a value for the next message to the other daemons.
func (n *news) tell(key string, f fact) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.batch) == 0 {
		n.batch = append(n.batch, n.sender...)
	}
	if len(n.batch)+newsHeader+len(key) > maxNews {
		return
	}
	n.batch = binary.LittleEndian.AppendUint16(n.batch, uint16(len(key)))
	n.batch = binary.LittleEndian.AppendUint64(n.batch, uint64(f.size))
	n.batch = binary.LittleEndian.AppendUint64(n.batch, uint64(f.ends))
	n.batch = append(n.batch, key...)
}

// take returns the queued message.
func (n *news) take() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := n.batch
	n.batch = nil
	return b
}

// hear calls learn for each value in a message of another daemon.
func (n *news) hear(b []byte, learn func(key string, f fact)) error {
	if len(b) < senderBytes {
		return errNews
	}
	if string(b[:senderBytes]) == n.sender {
		return nil
	}
	for b = b[senderBytes:]; len(b) > 0; {
		if len(b) < newsHeader || len(b) < newsHeader+int(binary.LittleEndian.Uint16(b)) {
			return errNews
		}
		end := newsHeader + int(binary.LittleEndian.Uint16(b))
		f := fact{size: int64(binary.LittleEndian.Uint64(b[2:])), ends: int64(binary.LittleEndian.Uint64(b[10:]))}
		if f.size < 0 || f.ends < 0 {
			return errNews
		}
		learn(string(b[newsHeader:end]), f)
		b = b[end:]
	}
	return nil
}

// run publishes messages, and receives those of others from a Redis, until ctx ends.
func (n *news) run(ctx context.Context, r *Remote) {
	if n.servers.kind != pool {
		sub := n.servers.client.Subscribe(ctx, n.channel())
		defer sub.Close()
		go func() {
			for m := range sub.Channel() {
				_ = r.Hear([]byte(m.Payload))
			}
		}()
	}
	tick := time.NewTicker(newsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if b := n.take(); len(b) > 0 {
				n.publish(ctx, b)
			}
		}
	}
}

// publish sends a message. Probes make up for a lost one.
func (n *news) publish(ctx context.Context, b []byte) {
	ctx, cancel := context.WithTimeout(ctx, n.servers.config.Timeout)
	defer cancel()
	if n.servers.kind != pool {
		_ = n.servers.client.Publish(ctx, n.channel(), b).Err()
		return
	}
	var telling sync.WaitGroup
	n.servers.each(func(c *redis.Client, m *node) {
		if m.up() && !n.servers.config.Pool.Self(m.addr) {
			telling.Go(func() { _ = c.Publish(ctx, Channel, b).Err() })
		}
	})
	telling.Wait()
}
