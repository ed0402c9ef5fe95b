package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/kvstore"
	"github.com/warmpath/warmpath/cache/kvstore/chunks"
	"github.com/warmpath/warmpath/cache/parts/bounded"
)

// Remote is a kvstore.Backing. Run works for it; Close ends it.
type Remote struct {
	config  Config
	servers *servers
	index   *index
	queue   *queue
	probes  bounded.Queue[string] // keys for which EXISTS found no fact
	news    *news
	counts  counts

	mu    sync.Mutex        // guards all below
	gone  map[string]uint64 // keys deleted here that the servers may still have, by the order of the deletion
	order uint64            // of deletions and puts
}

const (
	maxGone   = 1 << 16
	maxProbes = 4096
)

// Open makes the clients. It fails on errors that no server can mend, such as a broken URL. Run dials first.
func Open(c Config) (*Remote, error) {
	c = c.withDefaults()
	s, err := newServers(c)
	if err != nil {
		return nil, err
	}
	r := &Remote{config: c, servers: s, index: newIndex(), probes: make(bounded.Queue[string], maxProbes),
		gone: map[string]uint64{}}
	r.queue = newQueue(c.Queue)
	r.news = newNews(s)
	return r, nil
}

// name returns the key's name at the servers.
func (r *Remote) name(key string) string { return r.servers.prefix + key }

// Exists reports whether the servers have the key, by the index. It never waits for them: without a fact it queues a
// probe in the background.
func (r *Remote) Exists(key string, _ time.Time) bool {
	if r.isGone(key) || r.servers.own(key) || !r.servers.up(key) {
		return false
	}
	f, known := r.known(key)
	if !known && !r.index.missed(markOf(key), time.Now()) {
		r.probes.Put(key)
	}
	return known && f.size >= 0
}

// Sure reports whether the key's server has evicted nothing since the fact was confirmed. If it cannot decide, it
// queues a probe.
func (r *Remote) Sure(key string) bool {
	f, known := r.known(key)
	if known && r.servers.steady(key, f) {
		return true
	}
	r.probes.Put(key)
	return false
}

// Unsure reports whether the false of Exists for a key is no proof that the key is missing: its server does not answer,
// or its value is on the way.
func (r *Remote) Unsure(key string) bool { return !r.servers.up(key) || r.queue.has(key) }

// known returns the fact of a key, if it still holds.
func (r *Remote) known(key string) (fact, bool) {
	f, ok := r.index.find(markOf(key), time.Now())
	if ok && f.stand != r.servers.stand(key) {
		r.index.forget(markOf(key))
		return fact{}, false
	}
	return f, ok
}

func (r *Remote) isGone(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, gone := r.gone[key]
	return gone
}

// Delete drops the key, and queues its deletion at the servers.
func (r *Remote) Delete(key string) bool {
	if r.servers.own(key) {
		return false
	}
	had := r.index.forget(markOf(key))
	r.mu.Lock()
	r.order++
	j := &job{key: key, remove: true, order: r.order}
	full := len(r.gone) >= maxGone
	if !full {
		r.gone[key] = r.order
	}
	r.mu.Unlock()
	if !r.queue.push(j) && full {
		r.counts.undeleted.Add(1) // else tend tries again
	}
	return had
}

// Put queues a value to be written, or refuses it. It never waits.
func (r *Remote) Put(key string, expires time.Time, value *kvstore.Lease) (written <-chan struct{}, taken bool) {
	if r.servers.own(key) {
		return nil, false
	}
	had := r.index.forget(markOf(key))
	j := &job{key: key, expires: expires, value: value, size: value.Size(), had: had}
	r.mu.Lock()
	r.order++
	j.order = r.order
	r.mu.Unlock()
	if r.config.Through {
		j.written = make(chan struct{})
	}
	up := r.servers.up(key)
	if up && r.queue.push(j) {
		return j.written, true
	}
	if up {
		r.counts.crowded.Add(1)
	} else {
		r.counts.skipped.Add(1)
	}
	r.dropOld(j)
	return nil, false
}

// dropOld deletes the value that an unwritten one was to replace: it would come back once memory evicts the new one. If
// the key is one of LMCache's chunks, it deletes only a value that this daemon knows of. Such a key names its content,
// so a value that another daemon has put there is as good.
func (r *Remote) dropOld(j *job) {
	known := r.index.forget(markOf(j.key)) || j.had
	if _, chunk := chunks.ParseKey(j.key); known || !chunk {
		r.Delete(j.key)
	}
}

// settle drops a deletion that the servers have done, or that is older than the newest put.
func (r *Remote) settle(key string, order uint64) (newest bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone[key] > order {
		return false
	}
	delete(r.gone, key)
	return true
}

// Get reads a value into the memory that place returns.
func (r *Remote) Get(ctx context.Context, key string, place kvstore.Place) (bool, error) {
	if r.isGone(key) || r.servers.own(key) {
		return false, nil
	}
	if !r.servers.up(key) {
		r.counts.getsDown.Add(1)
		return false, nil
	}
	f, known := r.known(key)
	if !known && r.index.missed(markOf(key), time.Now()) {
		r.counts.misses.Add(1)
		return false, nil
	}
	asked := time.Now()
	size, err := r.read(ctx, key, f, known, place)
	switch {
	case errors.Is(err, redis.Nil):
		r.index.miss(markOf(key), asked)
		r.counts.misses.Add(1)
		return false, nil
	case errors.Is(err, errDown):
		r.counts.getsDown.Add(1)
		return false, nil
	case err != nil:
		r.counts.getErrors.Add(1)
		r.config.Log.Debug("a value did not come from the KV cache's L2", "error", err)
		return false, err
	}
	r.counts.hits.Add(1)
	r.counts.read.Add(uint64(size))
	return true, nil
}

// read requests the length if it is unknown, and then the value.
func (r *Remote) read(ctx context.Context, key string, f fact, known bool, place kvstore.Place) (int64, error) {
	at, err := r.servers.at(key)
	if err != nil {
		return 0, errDown // no member is up
	}
	for range 2 {
		if !known {
			f, err = r.measure(ctx, at, key)
			if err != nil {
				return 0, err
			}
		}
		size, err := r.fill(ctx, at, key, f, place)
		if !errors.Is(err, errSize) {
			if err == nil {
				f.came = true
				r.index.add(markOf(key), f)
			}
			return size, err
		}
		known = false // another value is there by now
	}
	return 0, errSize
}

var errSize = errors.New("remote: the value has another length than was said")

// measure reads the length and the life of a value.
func (r *Remote) measure(ctx context.Context, at redis.Cmdable, key string) (fact, error) {
	var length *redis.IntCmd
	var life *redis.DurationCmd
	stand := r.servers.stand(key)
	_, err := at.Pipelined(ctx, func(p redis.Pipeliner) error {
		length = p.StrLen(ctx, r.name(key))
		life = p.PTTL(ctx, r.name(key))
		return nil
	})
	if err != nil {
		return fact{}, err
	}
	ends, there := endOf(life.Val(), time.Now())
	if !there {
		return fact{}, redis.Nil
	}
	return fact{size: length.Val(), ends: ends, stand: stand}, nil
}

// endOf returns when a value ends of which Redis has said by PTTL how long it lives, in Unix milliseconds; 0 = it does
// not end. Redis says 0 of a value that ends within a millisecond.
func endOf(life time.Duration, now time.Time) (ends int64, there bool) {
	switch {
	case life == -2: // no such key
		return 0, false
	case life == -1:
		return 0, true
	}
	return now.Add(life).UnixMilli(), true
}

// fill reads a value of a known length into its place: go-redis reads from the socket into it. If the place is in
// pieces, the value goes through a buffer.
func (r *Remote) fill(ctx context.Context, at redis.Cmdable, key string, f fact, place kvstore.Place) (int64, error) {
	a := kvstore.Arrival{Size: f.size, Passing: !r.config.Memory || r.config.Promote == Never ||
		r.config.Promote == Second && !f.came}
	if f.ends != 0 {
		a.Expires = time.UnixMilli(f.ends)
	}
	pieces, err := place(a)
	if err != nil {
		return 0, err
	}
	room := pieces
	if len(pieces) != 1 {
		room = [][]byte{make([]byte, f.size)}
		r.counts.copied.Add(1)
	}
	n, err := at.GetToBuffer(ctx, r.name(key), room[0]).Result()
	if err != nil && !errors.Is(err, redis.Nil) && isShort(err) || err == nil && int64(n) != f.size {
		return 0, errSize
	}
	if err != nil {
		return 0, err
	}
	if len(pieces) != 1 {
		rest := room[0]
		for _, p := range pieces {
			rest = rest[copy(p, rest):]
		}
	}
	if !a.Passing && r.config.Memory {
		r.counts.promotions.Add(1)
	}
	return f.size, nil
}

// Flush deletes all keys with a prefix at the servers, whoever put them there, and returns how many. A key that was
// deleted here before, and whose deletion is still on its way, does not count. Other daemons of a Redis drop their
// facts about it within a second. Flush waits for the servers until ctx ends.
func (r *Remote) Flush(ctx context.Context, prefix string) (deleted int64, err error) {
	f := flush{servers: r.servers, prefix: prefix, found: func(key string) bool {
		r.index.forget(markOf(key))
		return !r.isGone(key)
	}}
	err = errors.Join(f.run(ctx), r.servers.unmark(ctx)) // even if none counted: this daemon may have deleted them before
	if err != nil {
		return f.deleted.Load(), fmt.Errorf("remote: %w", err)
	}
	return f.deleted.Load(), nil
}

// Hear applies a message of another daemon. It returns an error if the message is broken.
func (r *Remote) Hear(message []byte) error {
	return r.news.hear(slices.Clone(message), func(key string, f fact) {
		r.counts.heard.Add(1)
		if r.isGone(key) || r.servers.own(key) {
			return
		}
		f.stand = r.servers.stand(key)
		r.index.add(markOf(key), f)
	})
}
