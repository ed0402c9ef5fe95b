package kvstore

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// lossy is a tier behind that loses values when the test wants.
type lossy struct {
	mu     sync.Mutex // guards all below
	values map[string]string
	unsure map[string]bool
	gets   int
	gate   chan struct{} // a Get waits until it is closed; nil = no wait
}

func newLossy(keys ...string) *lossy {
	l := &lossy{values: map[string]string{}, unsure: map[string]bool{}}
	for _, k := range keys {
		l.values[k] = "value of " + k
	}
	return l
}

func (l *lossy) Exists(key string, _ time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.values[key]
	return ok
}

func (l *lossy) Sure(key string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.unsure[key]
}

func (l *lossy) Get(_ context.Context, key string, place Place) (bool, error) {
	l.mu.Lock()
	l.gets++
	gate := l.gate
	l.mu.Unlock()
	if gate != nil {
		<-gate
	}
	l.mu.Lock()
	text, ok := l.values[key]
	l.mu.Unlock()
	if !ok {
		return false, nil
	}
	pieces, err := place(Arrival{Size: int64(len(text)), Passing: true})
	if err != nil {
		return false, err
	}
	fill(pieces, text)
	return true, nil
}

func (l *lossy) Put(string, time.Time, *Lease) (<-chan struct{}, bool) { return nil, false }
func (l *lossy) Delete(key string) bool                                { return false }

// lose drops all values.
func (l *lossy) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.values)
}

func (l *lossy) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gets
}

// A promised value is there for a client that waits for ever, although the tier behind has lost it meanwhile.
func TestPromiseOfWhatIsFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newLossy("k", "j")
		s := open(t, Config{Far: far})
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		defer cancel()
		for range 2 {
			if !s.Promise("k", alice, 30*time.Second) {
				t.Fatal("it is not there")
			}
		}
		s.Promise("k", bob, 30*time.Second)
		s.Promise("j", bob, 30*time.Second)
		synctest.Wait()
		if n := s.Stats(); n.Wanted != 0 || n.Pins != 2 || far.count() != 2 {
			t.Errorf("%+v, %d reads", n, far.count())
		}
		far.lose()
		for i, owner := range []netip.Addr{alice, bob, alice} {
			if got, _ := get(s, "k", owner, 10); got != "value of k" {
				t.Errorf("read %d: %q", i, got)
			}
		}
		if got, _ := get(s, "k", alice, 10); got != "" {
			t.Errorf("it is kept after its promises were kept: %q", got)
		}
		time.Sleep(31 * time.Second)
		if n := s.Stats(); n.Entries != 0 || n.Broken != 0 {
			t.Errorf("after the time of a promise that nobody redeemed: %+v", n)
		}
	})
}

// For a client that accepts a miss no value is fetched. A value that the tier may have lost is not promised.
func TestPromiseOnlyOfWhatIsSure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newLossy("k", "j")
		far.unsure["j"] = true
		s := open(t, Config{Far: far})
		if !s.Exists("k", alice, time.Minute) || !s.Exists("j", alice, time.Minute) {
			t.Error("Exists does not say what the tier says")
		}
		if s.Promise("j", alice, time.Minute) || s.Promise("none", alice, time.Minute) {
			t.Error("it promises what may be lost")
		}
		synctest.Wait()
		if far.count() != 0 {
			t.Errorf("%d values were fetched", far.count())
		}
	})
}

// A value lost before its fetch is a broken promise, which is counted.
func TestBrokenPromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newLossy("k", "read", "deleted")
		far.gate = make(chan struct{})
		s := open(t, Config{Far: far})
		for _, key := range slices.Sorted(maps.Keys(far.values)) {
			s.Promise(key, alice, time.Minute)
		}
		s.Delete("deleted")
		if l := NewView(s, Here).Get(t.Context(), "k", nobody); l != nil || s.Stats().Broken != 0 {
			t.Error("a question that stays here breaks a promise")
		}
		far.lose()
		close(far.gate)
		synctest.Wait()
		if n := s.Stats(); n.Broken != 2 || n.Wanted != 0 {
			t.Errorf("%d are broken, and %d wait; want 2 and none", n.Broken, n.Wanted)
		}
	})
}

// The number of promises is bounded.
func TestPromisesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		far := newLossy()
		far.gate = make(chan struct{})
		s := open(t, Config{MaxBytes: 256 << 20, Far: far})
		promised := 0
		for i := range maxWanted + 100 {
			key := fmt.Sprint("k", i)
			far.mu.Lock()
			far.values[key] = key
			far.mu.Unlock()
			if s.Promise(key, alice, time.Hour) {
				promised++
			}
		}
		if promised != maxWanted || s.Stats().Wanted != maxWanted {
			t.Errorf("%d are promised, %d wait; want %d", promised, s.Stats().Wanted, maxWanted)
		}
		close(far.gate)
		synctest.Wait()
		if n := s.Stats(); n.Pins != maxWanted || n.Wanted != 0 {
			t.Errorf("%d are there, %d wait", n.Pins, n.Wanted)
		}
		if got, _ := get(s, "k7", alice, 2); got != "k7" {
			t.Errorf("%q", got)
		}
	})
}

// onDisk is a tier on this machine that records until when it has to keep each value.
type onDisk struct {
	*lossy
	kept map[string]time.Time
	size int
}

func (d *onDisk) Exists(key string, keep time.Time) bool {
	ok := d.lossy.Exists(key, keep)
	if ok && !keep.IsZero() {
		d.kept[key] = keep
	}
	return ok
}

func (d *onDisk) Unkeep(key string) { delete(d.kept, key) }

func (d *onDisk) Get(_ context.Context, key string, place Place) (bool, error) {
	if !d.lossy.Exists(key, time.Time{}) {
		return false, nil
	}
	pieces, err := place(Arrival{Size: int64(d.size)})
	if err != nil {
		return false, err
	}
	fill(pieces, key)
	return true, nil
}

// A promised value on the disk comes although all memory is promised and many readers hold their values: it waits for
// one of them. A value without a promise is a miss meanwhile.
func TestPromiseOnDiskIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &onDisk{lossy: newLossy(), kept: map[string]time.Time{}, size: 1 << 20}
		s := open(t, Config{MaxBytes: 8 << 20, MaxValue: 1 << 20, Disk: disk})
		for i := range 7 {
			must(t, put(s, fmt.Sprint("m", i), "x", 1<<20, Terms{}))
			s.Exists(fmt.Sprint("m", i), bob, time.Minute)
		}
		for i := range 12 {
			disk.values[fmt.Sprint("d", i)] = ""
			if !s.Promise(fmt.Sprint("d", i), alice, 30*time.Second) {
				t.Fatalf("d%d is not there", i)
			}
		}
		disk.values["other"] = ""
		var reading sync.WaitGroup
		for i := range 12 {
			reading.Go(func() {
				l := s.Get(t.Context(), fmt.Sprint("d", i), alice)
				if l == nil {
					t.Errorf("d%d was promised, and is a miss", i)
					return
				}
				time.Sleep(time.Second)
				l.Release()
			})
		}
		time.Sleep(100 * time.Millisecond)
		if l := s.Get(t.Context(), "other", alice); l != nil {
			t.Error("a value that nobody was promised takes memory that there is not")
		}
		reading.Wait()
		if n := s.Stats(); n.Broken != 0 || len(disk.kept) != 0 || len(s.memory.kept) != 0 {
			t.Errorf("%d promises are broken; the disk keeps %d values, the store %d promises", n.Broken, len(disk.kept),
				len(s.memory.kept))
		}
	})
}

// A promised value that the disk has lost is a broken promise, which is counted; so is one whose reader waited in vain.
func TestBrokenPromiseOfDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := &onDisk{lossy: newLossy("lost", "deleted", "waits", "held"), kept: map[string]time.Time{}, size: 1 << 20}
		s := open(t, Config{MaxBytes: 8 << 20, MaxValue: 1 << 20, Disk: disk})
		for key := range disk.values {
			s.Exists(key, alice, 30*time.Second)
		}
		s.Delete("deleted")
		delete(disk.values, "deleted")
		delete(disk.values, "lost")
		for _, key := range []string{"lost", "lost", "deleted", "never"} {
			if l := s.Get(t.Context(), key, alice); l != nil {
				t.Errorf("%s is there", key)
			}
		}
		if n := s.Stats(); n.Broken != 1 {
			t.Errorf("%d promises are broken; want one", n.Broken)
		}
		s.loads.maxHeap = 1
		for i := range 7 {
			must(t, put(s, fmt.Sprint("m", i), "x", 1<<20, Terms{}))
			defer s.Get(t.Context(), fmt.Sprint("m", i), bob).Release()
		}
		held := s.Get(t.Context(), "held", alice)
		if l := s.Get(t.Context(), "waits", alice); l != nil || s.Stats().Broken != 2 {
			t.Errorf("after %s: %v, %d promises are broken; want 2", loadTime, l, s.Stats().Broken)
		}
		held.Release()
	})
}

// A put of a key takes over the promise of the disk's value.
func TestPutTakesPromiseOver(t *testing.T) {
	disk := &onDisk{lossy: newLossy("k"), kept: map[string]time.Time{}, size: 1 << 20}
	s := open(t, Config{MaxBytes: 8 << 20, Disk: disk})
	s.Exists("k", alice, time.Minute)
	must(t, put(s, "k", "new", 1<<20, Terms{}))
	if n := s.Stats(); n.Pins != 1 || len(s.memory.kept) != 0 {
		t.Errorf("%d values in memory are promised; want k", n.Pins)
	}
}

// TestPromisesHoldHalf: the values that one client was promised hold a quarter of the memory, those of all clients and
// their leases half. Beyond it a client that accepts a miss is told that the value is there, and one that waits for ever
// that it is not; puts of others go on.
func TestPromisesHoldHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{MaxBytes: 66 << 20})
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		defer cancel()
		const n = 60
		for i := range n {
			must(t, put(s, fmt.Sprint("k", i), "x", 1<<20, Terms{}))
		}
		promised := func(owner netip.Addr) (count int) {
			for i := range n {
				if s.Promise(fmt.Sprint("k", i), owner, 30*time.Second) {
					count++
				}
				if !s.Exists(fmt.Sprint("k", i), owner, 30*time.Second) {
					t.Errorf("k%d is not there", i)
				}
			}
			return count
		}
		if a, b := promised(alice), promised(bob); a != 15 || b != 15 {
			t.Errorf("alice was promised %d values of %d, bob %d; want 15 each", a, n, b)
		}
		held := 0
		for i := range n {
			l := s.Get(ctx, fmt.Sprint("k", i), nobody)
			defer l.Release()
			if l.Hold() {
				held++
			}
		}
		if held != 31 {
			t.Errorf("%d of %d leases are held; want 31: those of promised values, and what is left of half", held, n)
		}
		time.Sleep(31 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if got := s.memory.holds.bytes; got != 31<<20 || len(s.memory.holds.of) != 0 {
			t.Errorf("%d bytes are held by leases, and %d clients have promises", got, len(s.memory.holds.of))
		}
	})
}

// TestPromiseAndPutOfOthers: all values are asked for by one client, and another one's puts are taken all the same.
func TestPromiseAndPutOfOthers(t *testing.T) {
	s := open(t, Config{})
	for i := range 7 {
		must(t, put(s, fmt.Sprint("k", i), "x", 1<<20, Terms{}))
		s.Exists(fmt.Sprint("k", i), alice, time.Minute)
	}
	for i := range 8 {
		must(t, put(s, fmt.Sprint("other", i), "x", 1<<20, Terms{}))
	}
	if l := s.Get(t.Context(), "k0", alice); l == nil {
		t.Error("the first promise is not kept")
	} else {
		l.Release()
	}
}
