package lmcache

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// The directory against a plain set a seat, over random admissions, evictions, clearings, seats given up and sweeps.
func TestDirectoryOracle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	d := newDirectory(1 << 20)
	type mirror struct {
		seat *seat
		keys map[uint64]bool
	}
	var all []*mirror
	for range 7 {
		all = append(all, &mirror{seat: d.newSeat(&instance{}, 0, "L", local), keys: map[uint64]bool{}})
	}
	for step := range 40_000 {
		m := all[rnd.IntN(len(all))]
		key := rnd.Uint64N(300)
		switch n := rnd.IntN(1000); {
		case n < 600:
			if !d.admit(m.seat, key) {
				t.Fatal("the directory is full")
			}
			m.keys[key] = true
		case n < 980:
			d.evict(m.seat, key)
			delete(m.keys, key)
		case n < 990:
			d.clear(m.seat)
			clear(m.keys)
		case n < 993:
			d.freeSeat(m.seat)
			m.seat = d.newSeat(&instance{}, 0, "L", local)
			clear(m.keys)
		default:
			d.sweepAll()
		}
		if step%97 != 0 {
			continue
		}
		held, entries := int64(0), int64(0)
		for _, m := range all {
			if got := m.seat.keys.Load(); got != int64(len(m.keys)) {
				t.Fatalf("step %d: a seat counts %d keys; want %d", step, got, len(m.keys))
			}
			for key := range uint64(300) {
				if got := d.seated(m.seat, key); got != m.keys[key] {
					t.Fatalf("step %d: key %d is %v; want %v", step, key, got, m.keys[key])
				}
			}
			held += int64(len(m.keys))
		}
		for i := range d.shards {
			for _, h := range d.shards[i].keys {
				entries += int64(h.len())
			}
		}
		if e, s := d.entries.Load(), d.stale.Load(); e != entries || e-s != held {
			t.Fatalf("step %d: %d entries, %d of them stale; there are %d, and %d held", step, e, s, entries, held)
		}
	}
	if n := len(*d.seats.Load()); n != len(all) {
		t.Errorf("%d seats for %d: numbers of freed ones are not given again", n, len(all))
	}
}

func TestDirectoryIsBounded(t *testing.T) {
	d := newDirectory(100)
	a, b := d.newSeat(&instance{}, 0, "L", local), d.newSeat(&instance{}, 1, "L", local)
	for key := range uint64(100) {
		if !d.admit(a, key) {
			t.Fatalf("key %d of 100 is refused", key)
		}
	}
	if d.admit(b, 5) || d.admit(a, 1000) || !d.admit(a, 5) {
		t.Error("want only known keys when full")
	}
	d.clear(a)
	if !d.admit(b, 5) {
		t.Error("a cleared entry still takes the room of its key")
	}
	d.sweepAll()
	if n := d.entries.Load(); n != 1 {
		t.Errorf("%d entries after the sweep; want 1", n)
	}
}

// chunked is a fleet whose instances hold chunks of prompts, computed with v.
type chunked struct {
	t testing.TB
	f *fleet
	v Variant
	l *learner
}

func newChunked(t testing.TB, v Variant) *chunked {
	c := &chunked{t: t, f: newFleet(Limits{}, quiet), v: v, l: newLearner(0, nil, v.Chunk)}
	return c
}

// hold has a rank of an instance admit keys.
func (c *chunked) hold(id string, rank int, location string, keys ...uint64) {
	c.t.Helper()
	m := &message{kind: operations, instance: id, worker: rank, location: location, from: "10.0.0.1"}
	for _, k := range keys {
		m.ops = append(m.ops, operation{key: k, seq: noSeq})
	}
	if err := c.f.report(m, time.Now()); err != nil {
		c.t.Fatal(err)
	}
	c.f.instances[id].variant.Store(&c.v)
}

// keys computes the chunks of a prompt.
func (c *chunked) keys(ids []uint32) (keys []uint64) {
	h, err := newHasher(c.v)
	if err != nil {
		c.t.Fatal(err)
	}
	for ; len(ids) >= c.v.Chunk; ids = ids[c.v.Chunk:] {
		keys = append(keys, h.next(ids[:c.v.Chunk]))
	}
	if len(ids) > 0 && c.v.hashesRest() {
		keys = append(keys, h.next(ids))
	}
	return keys
}

func (c *chunked) roster(workers ...Worker) *Roster {
	r := &Roster{fleet: c.f, learn: c.l}
	r.Set(workers)
	return r
}

var current = Variant{Algorithm: Builtin, Tail: EmptyTail, Chunk: 16}

func TestMatch(t *testing.T) {
	c := newChunked(t, current)
	ids := upTo(100) // six chunks and four tokens
	k := c.keys(ids)
	c.hold("whole", 0, "LocalCPUBackend", k...)
	c.hold("hole", 0, "LocalCPUBackend", k[0], k[1], k[3])
	c.hold("tail", 0, "LocalCPUBackend", k[1], k[2])
	c.hold("tiers", 0, "LocalCPUBackend", k[0], k[3])
	c.hold("tiers", 0, "LocalDiskBackend", k[1])
	c.hold("tiers", 0, "RemoteBackend", k[2])
	c.hold("ranks", 0, "LocalCPUBackend", k[0], k[1], k[2])
	c.hold("ranks", 1, "LocalCPUBackend", k[0], k[1])
	c.hold("other", 0, "LocalCPUBackend", 1, 2, 3)
	names := []string{"whole", "hole", "tail", "tiers", "ranks", "other", "nobody"}
	want := []Held{{96, 96, true}, {32, 32, true}, {0, 0, true}, {32, 64, true}, {32, 32, true}, {0, 0, true}, {}}
	var workers []Worker
	for n, name := range names {
		workers = append(workers, Worker{Slot: uint32(10 + n), ID: name})
	}
	for _, i := range c.f.instances {
		i.judge()
	}
	r := c.roster(workers...)
	var q Query
	match := func(ids []uint32, want []Held) {
		t.Helper()
		slots, out := []uint32{}, make([]Held, len(workers))
		for _, w := range workers {
			slots = append(slots, w.Slot)
		}
		q.Reset("", ids)
		r.Match(&q, slots, out)
		for n := range out {
			if out[n] != want[n] {
				t.Errorf("%d tokens, %s: %+v; want %+v", len(ids), names[n], out[n], want[n])
			}
		}
	}
	match(ids, want)
	match(ids[:32], []Held{{31, 31, true}, {31, 31, true}, {0, 0, true}, {31, 31, true}, {31, 31, true}, {0, 0, true}, {}})
	match(ids[:10], []Held{{0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, true}, {0, 0, true}, {}})
	match(nil, make([]Held, 7))
	c.f.instances["whole"].live.Store(false)
	want[0] = Held{}
	match(ids, want)
}

// Up to 0.3.15 the rest of a prompt is a chunk too.
func TestMatchOfARest(t *testing.T) {
	c := newChunked(t, Variant{Algorithm: Builtin, Chunk: 16})
	c.hold("a", 0, "LocalCPUBackend", c.keys(upTo(40))...)
	c.f.instances["a"].judge()
	r := c.roster(Worker{Slot: 1, ID: "a"})
	var q Query
	out := make([]Held, 1)
	for _, f := range []struct{ prompt, want int }{{40, 39}, {41, 32}, {39, 32}, {60, 32}} {
		q.Reset("", upTo(f.prompt))
		r.Match(&q, []uint32{1}, out)
		if out[0].Local != uint32(f.want) {
			t.Errorf("of %d tokens %d are held; want %d", f.prompt, out[0].Local, f.want)
		}
	}
}

func TestRoster(t *testing.T) {
	c := newChunked(t, current)
	at := func(id, ip string) {
		m := &message{kind: register, instance: id, ip: ip, port: 1, from: ip}
		if err := c.f.register(m, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	at("worker-a", "10.0.0.1")
	at("pod-b", "10.0.0.2")
	at("pod-c", "10.0.0.3")
	at("pod-c2", "10.0.0.3")
	at("pod-d", "10.0.0.4")
	at("pod-e", "10.0.0.5")
	if _, err := c.f.enroll("node", "10.0.0.6", "10.0.0.6", time.Now()); err != nil {
		t.Fatal(err)
	}
	r := &Roster{fleet: c.f, learn: c.l, names: map[string]string{"pod-e": "worker-x"}}
	workers := []Worker{{0, "worker-a", "elsewhere"}, {1, "b", "10.0.0.2"}, {2, "c", "10.0.0.3"}, {3, "d1", "10.0.0.4"},
		{4, "d2", "10.0.0.4"}, {5, "worker-x", "10.0.0.1"}, {6, "n1", "10.0.0.6"}, {7, "n2", "10.0.0.6"}, {8, "e", "10.0.0.5"}}
	r.Set(workers)
	for slot, want := range []string{"worker-a", "pod-b", "", "", "", "pod-e", "node", "node", ""} {
		if got := r.Instance(uint32(slot)); got != want {
			t.Errorf("worker %s has instance %q; want %q", workers[slot].ID, got, want)
		}
	}
	at("worker-new", "10.0.0.9")
	r.workers.Store(&[]Worker{{9, "worker-new", ""}})
	r.refresh()
	if got := r.Instance(9); got != "worker-new" {
		t.Errorf("an instance that comes later is %q", got)
	}
}

// Readers, operations, departures and sweeps side by side.
func TestMatchHammer(t *testing.T) {
	c := newChunked(t, current)
	ids := upTo(256)
	k := c.keys(ids)
	c.hold("a", 0, "LocalCPUBackend", k...)
	c.f.instances["a"].judge()
	r := c.roster(Worker{Slot: 1, ID: "a"}, Worker{Slot: 2, ID: "b"})
	var readers, writers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			var q Query
			out := make([]Held, 2)
			for {
				select {
				case <-stop:
					return
				default:
				}
				q.Reset("", ids)
				r.Match(&q, []uint32{1, 2}, out)
				if out[0].Local != 255 {
					t.Errorf("a holds %+v", out[0])
					return
				}
			}
		})
	}
	for n := range 2 {
		writers.Go(func() {
			for round := range 100 {
				now := time.Now()
				m := &message{kind: register, instance: "b", worker: n, ip: "10.0.0.1", port: round}
				if err := c.f.register(m, now); err != nil {
					t.Error(err)
				}
				c.hold2("b", n, k)
				r.refresh()
				tick(c.f, now)
				c.f.deregister(m)
				c.f.mu.Lock()
				c.f.dir.sweepAll()
				c.f.mu.Unlock()
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

// hold2 is hold for writers side by side.
func (c *chunked) hold2(id string, rank int, keys []uint64) {
	m := &message{kind: operations, instance: id, worker: rank, location: "LocalCPUBackend"}
	for n, k := range keys {
		m.ops = append(m.ops, operation{key: k, seq: int64(n)})
	}
	_ = c.f.report(m, time.Now())
}

func TestMatchDoesNotAllocate(t *testing.T) {
	c := newChunked(t, Variant{Algorithm: Builtin, Tail: EmptyTail, Chunk: 256})
	ids := upTo(4096)
	c.hold("a", 0, "LocalCPUBackend", c.keys(ids)...)
	c.f.instances["a"].judge()
	r := c.roster(Worker{Slot: 1, ID: "a"})
	var q Query
	out := make([]Held, 1)
	slots := []uint32{1}
	if n := testing.AllocsPerRun(20, func() {
		q.Reset("", ids)
		r.Match(&q, slots, out)
	}); n != 0 || out[0].Local != 4095 {
		t.Errorf("%v allocations, %+v", n, out[0])
	}
}

// BenchmarkMatch looks a 64k-token prompt up with 256 instances, of which 8 hold all of it.
func BenchmarkMatch(b *testing.B) {
	c := newChunked(b, Variant{Algorithm: Builtin, Tail: EmptyTail, Chunk: 256})
	ids := upTo(64 << 10)
	k := c.keys(ids)
	var workers []Worker
	var slots []uint32
	for n := range 256 {
		id := string(rune('a'+n/26)) + string(rune('a'+n%26))
		held := k[:4]
		if n%32 == 0 {
			held = k
		}
		c.hold(id, 0, "LocalCPUBackend", held...)
		workers = append(workers, Worker{Slot: uint32(n), ID: id})
		slots = append(slots, uint32(n))
	}
	for _, i := range c.f.instances {
		i.judge()
	}
	r := c.roster(workers...)
	var q Query
	out := make([]Held, len(slots))
	b.ReportAllocs()
	for b.Loop() {
		q.Reset("", ids)
		r.Match(&q, slots, out)
	}
	if out[0].Local != 64<<10-1 || out[1].Local != 1024 {
		b.Fatalf("%+v %+v", out[0], out[1])
	}
}

func BenchmarkAdmit(b *testing.B) {
	d := newDirectory(1 << 22)
	s := d.newSeat(&instance{}, 0, "L", local)
	key := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		key++
		d.admit(s, key*0x9e3779b97f4a7c15)
		if key > 1<<19 {
			d.evict(s, (key-1<<19)*0x9e3779b97f4a7c15)
		}
	}
}
