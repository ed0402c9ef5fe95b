package lmcache

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/warmpath/warmpath/cache/parts/seldom"
)

// fleet is who has registered and what each holds by its reports. It has no sockets and no clock.
type fleet struct {
	dir   *directory
	log   *slog.Logger
	limit Limits
	seed  uint32 // PYTHONHASHSEED of the workers

	warned seldom.Once

	mu        sync.Mutex // guards instances, what is in them, count and freed
	instances map[string]*instance
	common    *instance         // who holds what all servers share; not in instances
	conns     map[uint64]string // the hosts of open connections
	count     Counts

	freed   []uint32      // numbers of instances that are gone
	numbers atomic.Int64  // given so far: every instance's is below
	changed atomic.Uint64 // counts registrations and departures
	asks    atomic.Uint64 // counts prompts looked up
}

// Limits bound what workers can make the daemon hold. Zero means the default.
type Limits struct {
	Instances int // 1024
	Keys      int // chunks of one instance, a rank and location each; 1 M
	AllKeys   int // of all together; 4 M, some 330 MB
}

func (l Limits) withDefaults() Limits {
	for p, otherwise := range map[*int]int{&l.Instances: 1024, &l.Keys: 1 << 20, &l.AllKeys: 4 << 20} {
		if *p <= 0 {
			*p = otherwise
		}
	}
	return l
}

// maxRanks is how many ranks an instance may have: a bit of a word each.
const maxRanks = 64

// maxLocations is how many locations one rank may name, and maxSeats how many all together: 1,024 instances of 16 ranks
// with two each.
const (
	maxLocations = 8
	maxSeats     = 1 << 15
)

// Counts are what has happened since the start.
type Counts struct {
	Registered, Deregistered           uint64
	Admits, Evicts                     uint64 // operations applied
	Gaps, SyncsAsked, Syncs            uint64
	Refused                            uint64 // messages that are not understood or over a limit
	Flooded, Conflicts, Unstable, Lost uint64 // views cleared or doubted
	Events, Duplicates, StaleEvents    uint64 // batches at the coordinator
	StoreLost, StoreCleared            uint64 // parts that a store behind has lost; times that it lost too many to list
}

func newFleet(l Limits, log *slog.Logger) *fleet {
	l = l.withDefaults()
	f := &fleet{dir: newDirectory(l.AllKeys), log: log, limit: l, instances: map[string]*instance{},
		conns: map[uint64]string{}}
	f.common = &instance{server: true, ranks: map[int]*rank{}}
	return f
}

var errNoName = errors.New("no instance_id")

// find returns the instance, and makes it if it is new.
func (f *fleet) find(id string, server bool, now time.Time) (*instance, error) {
	if id == "" {
		return nil, errNoName
	}
	if i := f.instances[id]; i != nil {
		if i.server != server {
			return nil, fmt.Errorf("instance %q is known as another kind: a worker and a server of one name", id)
		}
		return i, nil
	}
	if len(f.instances) >= f.limit.Instances && !makeRoom(f, now) {
		return nil, fmt.Errorf("%d instances already, and none of them is lost", f.limit.Instances)
	}
	i := &instance{id: id, server: server, ranks: map[int]*rank{}, since: now}
	f.instances[id] = i
	f.number(i)
	return i, nil
}

// number gives i the last freed row, or one more.
func (f *fleet) number(i *instance) {
	if n := len(f.freed); n > 0 {
		i.number = f.freed[n-1]
		f.freed = f.freed[:n-1]
	} else {
		i.number = uint32(f.numbers.Add(1) - 1)
	}
	f.changed.Add(1)
}

// rankOf returns a rank of the instance, and makes it if it is new.
func (f *fleet) rankOf(i *instance, number int, now time.Time) (*rank, error) {
	if r := i.ranks[number]; r != nil {
		return r, nil
	}
	if number >= maxRanks {
		f.discard(i)
		return nil, fmt.Errorf("worker_id %d; at most %d ranks of an instance are followed", number, maxRanks)
	}
	r := &rank{number: number, since: now, heard: now, asks: f.asks.Load(), streams: map[string]*stream{}}
	i.ranks[number] = r
	if !i.server { // a server's keys have the number of its ranks
		i.need.Store(i.need.Load() | 1<<number)
	}
	return r, nil
}

// streamOf returns what the rank reports of the location.
func (f *fleet) streamOf(i *instance, r *rank, location string, t tier) (*stream, error) {
	if s := r.streams[location]; s != nil {
		return s, nil
	}
	if f.dir.seatCount() >= maxSeats {
		return nil, fmt.Errorf("%d ranks and locations already", maxSeats)
	}
	if location == "" || len(r.streams) >= maxLocations {
		return nil, fmt.Errorf("location %q; at most %d with a name each", location, maxLocations)
	}
	s := &stream{seat: f.dir.newSeat(i, r.number, location, t), next: noSeq}
	r.streams[location] = s
	return s, nil
}

// register takes a RegisterMsg, or a heartbeat of a worker that is not known. A worker that registers has an empty
// cache, whatever it reported before.
func (f *fleet) register(m *message, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.enter(m, now)
}

func (f *fleet) enter(m *message, now time.Time) error {
	i, err := f.find(m.instance, false, now)
	if err != nil {
		return err
	}
	r, err := f.rankOf(i, m.worker, now)
	if err != nil {
		return err
	}
	address := hostPort(m.ip, m.port)
	*r = rank{number: r.number, ip: m.ip, from: m.from, conn: m.conn, address: address, peerURL: m.peerURL,
		since: now, heard: now, asks: f.asks.Load(), streams: r.streams}
	for _, s := range r.streams {
		f.dir.clear(s.seat)
		s.next = noSeq
	}
	i.variant.Store(nil)
	i.admits.Store(0)
	i.judge()
	f.count.Registered++
	f.changed.Add(1)
	f.log.Info("Worker registered: "+i.id, "rank", r.number, "address", r.address)
	return nil
}

// beat takes a HeartbeatMsg. It returns why the worker shall send all its keys, or "".
func (f *fleet) beat(m *message, now time.Time) (reason string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.instances[m.instance]
	if i == nil || i.ranks[m.worker] == nil {
		if err := f.enter(m, now); err != nil {
			return "", err
		}
		i = f.instances[m.instance]
		i.ranks[m.worker].want = "worker_re_registered"
	}
	r := i.ranks[m.worker]
	address := hostPort(m.ip, m.port)
	if r.address == "" { // so far it has only reported
		r.ip, r.address, r.peerURL = m.ip, address, m.peerURL
	}
	if address != r.address {
		f.doubt(i, conflict, now, "addresses", r.address+" and "+address)
		return "", nil
	}
	if !r.beat.IsZero() && now.After(r.beat) {
		r.interval = now.Sub(r.beat)
	}
	r.beat, r.reported = now, true
	r.sign(m.from, now)
	i.judge()
	if r.want == "" || r.sync != nil || now.Sub(r.asked) < askAgain {
		return "", nil
	}
	r.asked = now
	f.count.SyncsAsked++
	return r.want, nil
}

// askAgain is how long a worker has to begin a full sync: it waits up to 5 s before.
const askAgain = time.Minute

// deregister takes a DeRegisterMsg.
func (f *fleet) deregister(m *message) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := f.instances[m.instance]
	if i == nil || i.server {
		return
	}
	r := i.ranks[m.worker]
	if r == nil || r.address != hostPort(m.ip, m.port) {
		return // the worker before the one that has the name now
	}
	f.count.Deregistered++
	f.log.Info("LMCache worker deregistered", "instance", i.id, "rank", r.number)
	f.drop(i, r)
}

// drop forgets a rank, and the instance with its last.
func (f *fleet) drop(i *instance, r *rank) {
	for _, s := range r.streams {
		f.dir.freeSeat(s.seat)
	}
	delete(i.ranks, r.number)
	i.need.Store(i.need.Load() &^ (1 << r.number))
	f.changed.Add(1)
	if len(i.ranks) > 0 {
		i.judge()
		return
	}
	i.live.Store(false)
	f.remove(i)
}

// remove forgets an instance whose seats are free.
func (f *fleet) remove(i *instance) {
	delete(f.instances, i.id)
	f.freed = append(f.freed, i.number)
	f.changed.Add(1)
}

// discard takes an instance out again that was made for a message which was then refused.
func (f *fleet) discard(i *instance) {
	if len(i.ranks) == 0 && !i.server {
		f.remove(i)
	}
}

// doubtFor is how long a view is not believed after a conflict, a flood or gap after gap.
const doubtFor = time.Minute

// remedies has what to do about each trouble.
var remedies = map[trouble]string{
	flooded:  "its chunks are over the limit: raise chunk_size of the worker, or the limit",
	conflict: "give each worker an lmcache_instance_id of its own",
	unstable: "look for lost messages, or two workers with one lmcache_instance_id",
	silent:   "look at the worker; restart it if it lives, as it may have registered in vain",
}

// doubt clears what i holds and does not believe it for a while.
func (f *fleet) doubt(i *instance, why trouble, now time.Time, details ...any) {
	f.clear(i)
	for _, r := range i.ranks {
		r.want = "view_cleared"
	}
	i.until = now.Add(doubtFor)
	if i.why != why {
		i.why = why
		switch why {
		case flooded:
			f.count.Flooded++
		case conflict:
			f.count.Conflicts++
		case unstable:
			f.count.Unstable++
		}
		f.warn(string(why)+i.id, "what an LMCache instance holds is cleared and not believed for a minute",
			append([]any{"instance", i.id, "reason", why, "remedy", remedies[why]}, details...)...)
	}
	i.judge()
}

// clear forgets all chunks of i. Its streams go on.
func (f *fleet) clear(i *instance) {
	for _, r := range i.ranks {
		for _, s := range r.streams {
			f.dir.clear(s.seat)
		}
	}
}

// warn logs once for each key.
func (f *fleet) warn(key, text string, args ...any) { f.warned.Warn(f.log, key, text, args...) }

// plug notes a connection on which workers report.
func (f *fleet) plug(conn uint64, host string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[conn] = host
}

// unplug notes that a connection is gone. What it lost shows in the sequence numbers of those who have any; the others'
// holdings are cleared.
func (f *fleet) unplug(conn uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, conn)
	for _, i := range f.instances {
		for _, r := range i.ranks {
			if r.conn != conn {
				continue
			}
			for _, s := range r.streams {
				if s.next == noSeq {
					f.dir.clear(s.seat)
				}
			}
		}
	}
}

// unsure returns the instances of which it is not known how they hash.
func (f *fleet) unsure() (all []*instance) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.instances {
		if i.variant.Load() == nil {
			all = append(all, i)
		}
	}
	return all
}

// learnt notes how an instance hashes, or warns that it has long not been found out.
func (f *fleet) learnt(i *instance, v *Variant, admits, prompts uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.instances[i.id] != i:
	case v != nil:
		i.variant.Store(v)
		f.log.Info("LMCache instance understood", "instance", i.id, "hash", v.String())
	case admits >= puzzledAdmits && prompts >= puzzledPrompts:
		f.warn("hash"+i.id, "the chunk keys of an LMCache instance are not understood: what it holds does not count",
			"instance", i.id, "remedy", "set PYTHONHASHSEED=0 for the workers, and [lmcache] hash, chunk_size and"+
				" hash_seed as they have it; builtin needs Python 3.12 with LMCache up to 0.3.15")
	}
}

// If so many chunks and prompts had no match, that is no accident.
const (
	puzzledAdmits  = 64
	puzzledPrompts = 32
)

// refuse counts a message or a peer that is not taken, and warns once for each peer.
func (f *fleet) refuse(key, text string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count.Refused++
	f.warn(key, text, args...)
}
