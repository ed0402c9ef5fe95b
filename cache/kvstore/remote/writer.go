package remote

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/warmpath/warmpath/cache/kvstore"
)

// lastWrites bounds the time for writes of a daemon that ends.
const lastWrites = 3 * time.Second

// Run works until ctx ends: it writes queued values, probes keys for EXISTS, and tends the servers. Then it writes the
// values that still wait, for lastWrites.
func (r *Remote) Run(ctx context.Context) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	var working, writing sync.WaitGroup
	for _, lane := range r.queue.lanes {
		writing.Go(func() { r.write(life, lane) })
	}
	working.Go(func() { r.probe(ctx) })
	working.Go(func() { r.tend(ctx) })
	working.Go(func() { r.news.run(ctx, r) })
	<-ctx.Done()
	r.queue.close()
	timer := time.AfterFunc(lastWrites, end)
	defer timer.Stop()
	writing.Wait()
	working.Wait()
}

// Close closes the connections. Run must have returned.
func (r *Remote) Close() error { return r.servers.close() }

// write does the jobs of one lane.
func (r *Remote) write(ctx context.Context, lane <-chan *job) {
	var joined []byte
	for j := range lane {
		if j.remove {
			r.remove(ctx, j)
		} else {
			if kvstore.Touch(func() { joined = r.set(ctx, j, joined) }) != nil {
				r.counts.skipped.Add(1)
			}
		}
		r.queue.done(j)
	}
}

// remove deletes a key at the servers. If they are silent, the key stays in gone for tend.
func (r *Remote) remove(ctx context.Context, j *job) {
	at, err := r.servers.at(j.key)
	if err == nil {
		err = at.Del(ctx, r.name(j.key)).Err()
	}
	if err == nil {
		r.settle(j.key, j.order)
	}
}

// maxJoined bounds the buffer that a lane keeps for values in pieces.
const maxJoined = 32 << 20

// set writes a value. go-redis hands a slice to the connection as it is, so a value in one piece of the arena is not
// copied; pieces are joined first.
func (r *Remote) set(ctx context.Context, j *job, joined []byte) []byte {
	written := false
	defer func() {
		if !written {
			r.dropOld(j)
		}
		j.end(written && !r.config.Memory)
	}()
	var life time.Duration
	if !j.expires.IsZero() {
		life = time.Until(j.expires)
		if life <= 0 {
			r.counts.skipped.Add(1)
			return joined
		}
	} else if r.config.Redis != nil {
		life = r.config.Redis.TTL
	}
	var value []byte
	if pieces := j.value.Pieces(); len(pieces) == 1 {
		value = pieces[0]
	} else {
		joined = slices.Concat(append([][]byte{joined[:0]}, pieces...)...)
		value = joined
		r.counts.copied.Add(1)
	}
	written = r.send(ctx, j, value, life)
	if cap(joined) > maxJoined {
		return nil
	}
	return joined
}

// send writes a value, and reports whether the servers have it now.
func (r *Remote) send(ctx context.Context, j *job, value []byte, life time.Duration) bool {
	stand := r.servers.stand(j.key)
	_, node := r.servers.owner(j.key)
	at, err := r.servers.at(j.key)
	if err != nil || node == nil || !node.up() || node.paused() {
		r.counts.skipped.Add(1)
		return false
	}
	err = at.Set(ctx, r.name(j.key), value, max(life, 0)).Err()
	if err != nil {
		r.failed(node, err)
		return false
	}
	node.took()
	r.counts.puts.Add(1)
	r.counts.written.Add(uint64(j.size))
	if !r.settle(j.key, j.order) {
		return true // deleted meanwhile; the deletion comes next in this lane
	}
	f := fact{size: j.size, stand: stand}
	if life > 0 {
		f.ends = time.Now().Add(life).UnixMilli()
	}
	r.index.add(markOf(j.key), f)
	r.news.tell(j.key, f)
	return true
}

// failed counts a value that was not written.
func (r *Remote) failed(n *node, err error) {
	switch {
	case errors.Is(err, errDown):
		r.counts.skipped.Add(1)
	case !answered(err) || isCanceled(err):
		r.counts.putErrors.Add(1)
	default:
		why := n.refuse(err)
		r.counts.refused(why)
	}
}

func isCanceled(err error) bool { return errors.Is(err, context.Canceled) }

const (
	probeBatch = 256
	tendEvery  = 50 * time.Millisecond
	markEvery  = 20 // rounds of tend, which make a second
	weighEvery = 10 * markEvery
)

// probe queries the servers for keys for which EXISTS found no fact.
func (r *Remote) probe(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-r.probes:
			r.ask(ctx, slices.AppendSeq([]string{key}, r.probes.Waiting(probeBatch-1)))
		}
	}
}

// ask queries keys, those of one server in one round trip.
func (r *Remote) ask(ctx context.Context, keys []string) {
	byServer := map[redis.Cmdable][]string{}
	for _, key := range keys {
		if f, known := r.known(key); known && r.servers.steady(key, f) || r.index.missed(markOf(key), time.Now()) {
			continue
		}
		if at, err := r.servers.at(key); err == nil {
			byServer[at] = append(byServer[at], key)
		}
	}
	for at, list := range byServer {
		r.askOne(ctx, at, list)
	}
}

func (r *Remote) askOne(ctx context.Context, at redis.Cmdable, keys []string) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	lengths := make([]*redis.IntCmd, len(keys))
	lives := make([]*redis.DurationCmd, len(keys))
	stands := make([]stand, len(keys))
	asked := time.Now()
	_, err := at.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			stands[i] = r.servers.stand(key)
			lengths[i] = p.StrLen(ctx, r.name(key))
			lives[i] = p.PTTL(ctx, r.name(key))
		}
		return nil
	})
	r.counts.probes.Add(uint64(len(keys)))
	if err != nil {
		return
	}
	now := time.Now()
	for i, key := range keys {
		if ends, there := endOf(lives[i].Val(), now); there {
			r.index.add(markOf(key), fact{size: lengths[i].Val(), ends: ends, stand: stands[i]})
		} else {
			r.index.miss(markOf(key), asked)
		}
	}
}

// Check queries whether the servers have keys, and drops the facts of missing ones. The servers do not count it as a
// use.
func (r *Remote) Check(ctx context.Context, keys []string) {
	byServer := map[redis.Cmdable][]string{}
	for _, key := range keys {
		if _, known := r.known(key); known && r.servers.up(key) && !r.servers.own(key) {
			if at, err := r.servers.at(key); err == nil {
				byServer[at] = append(byServer[at], key)
			}
		}
	}
	for at, list := range byServer {
		for some := range slices.Chunk(list, probeBatch) {
			r.checkOne(ctx, at, some)
		}
	}
}

func (r *Remote) checkOne(ctx context.Context, at redis.Cmdable, keys []string) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	there := make([]*redis.IntCmd, len(keys))
	asked := time.Now()
	_, err := at.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			there[i] = p.Exists(ctx, r.name(key)) // STRLEN would count as a use
		}
		return nil
	})
	if err != nil {
		return
	}
	for i, key := range keys {
		if there[i].Val() == 0 {
			r.index.lose(markOf(key), asked)
		}
	}
}

// tend probes the servers, and deletes there what was deleted here.
func (r *Remote) tend(ctx context.Context) {
	tick := time.NewTicker(tendEvery)
	defer tick.Stop()
	for round := 0; ; round++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		r.servers.beat(ctx)
		if round%markEvery == 0 {
			r.servers.compareMark(ctx)
			r.servers.countEvictions(ctx)
			r.deleteAgain()
		}
		if round%weighEvery == markEvery {
			r.servers.weigh(ctx)
		}
	}
}

// deleteAgain queues the deletions that did not reach the servers.
func (r *Remote) deleteAgain() {
	r.mu.Lock()
	var jobs []*job
	for key, order := range r.gone {
		if len(jobs) == laneLength {
			break
		}
		jobs = append(jobs, &job{key: key, remove: true, order: order})
	}
	r.mu.Unlock()
	for _, j := range jobs {
		if r.servers.up(j.key) && !r.queue.push(j) {
			return
		}
	}
}
