package kvstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	nobody = netip.Addr{}
	alice  = netip.MustParseAddr("10.0.0.1")
	bob    = netip.MustParseAddr("10.0.0.2")
)

func open(t testing.TB, c Config) *Store {
	t.Helper()
	if c.MaxBytes == 0 {
		c.MaxBytes = 8 << 20
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if n := s.Stats(); n.Leases != 0 || n.Fillings != 0 {
			t.Errorf("%d leases and %d fillings are left", n.Leases, n.Fillings)
		}
		if err := s.Close(time.Second); err != nil {
			t.Error(err)
		}
	})
	return s
}

// put stores a value of that size, made of repetitions of text.
func put(s *Store, key, text string, size int, t Terms) error {
	f, err := s.Reserve(key, int64(size))
	if err != nil {
		return err
	}
	fill(f.Pieces(), text)
	if !f.Commit(t) {
		return errors.New("not committed")
	}
	return nil
}

func fill(pieces [][]byte, text string) {
	n := 0
	for _, p := range pieces {
		for i := range p {
			p[i] = text[n%len(text)]
			n++
		}
	}
}

// get returns the text of a value and its size; "" = a miss, "mixed" = the bytes of different texts.
func get(s *Store, key string, owner netip.Addr, text int) (string, int) {
	l := s.Get(context.Background(), key, owner)
	if l == nil {
		return "", 0
	}
	defer l.Release()
	b := bytes.Join(l.Pieces(), nil)
	one := b[:min(text, len(b))]
	for i := range b {
		if b[i] != one[i%len(one)] {
			return "mixed", len(b)
		}
	}
	return string(one), len(b)
}

// Values that clients announce and do not send take half of the memory at most, and others wait a while for that room.
// A single value may be larger.
func TestAnnouncedValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{MaxBytes: 8 << 20})
		for i := range 7 {
			must(t, put(s, fmt.Sprint("k", i), "x", 1<<20, Terms{}))
		}
		one, err := s.Reserve("one", 1<<20)
		must(t, err)
		start := time.Now()
		if _, err := s.Reserve("two", 4<<20); err != ErrWriting || time.Since(start) < writingWait {
			t.Errorf("after %s: %v; want %v after %s", time.Since(start), err, ErrWriting, writingWait)
		}
		if n := s.Stats(); n.Entries < 6 || n.Refused["writing"] != 1 {
			t.Errorf("%d of 7 values are left; %v were refused", n.Entries, n.Refused)
		}
		time.AfterFunc(time.Second, one.Abort)
		all, err := s.Reserve("all", 7<<20)
		must(t, err)
		all.Commit(Terms{})
		_, more := get(s, "all", nobody, 1)
		if more != 7<<20 || s.memory.announced != 0 {
			t.Errorf("%d bytes are there, %d are announced", more, s.memory.announced)
		}
	})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestValues(t *testing.T) {
	s := open(t, Config{})
	for _, size := range []int{1, 28, 64, 4096, 65536, 65537, 1<<20 + 28, 3 << 20} {
		must(t, put(s, "k", "abc", size, Terms{}))
		if text, n := get(s, "k", nobody, 3); text != "abc"[:min(3, size)] || n != size {
			t.Errorf("a value of %d comes back as %q of %d", size, text, n)
		}
	}
	must(t, put(s, "empty", "x", 0, Terms{}))
	if l := s.Get(t.Context(), "empty", nobody); l == nil || l.Size() != 0 {
		t.Error("a value of no bytes is not there")
	} else {
		l.Release()
		l.Release() // a second call does no harm
	}
	if !s.Delete("k") || s.Delete("k") || s.Exists("k", nobody, 0) {
		t.Error("a deleted value is there")
	}
	s.Delete("empty")
	if n := s.Stats(); n.Entries != 0 || n.ValueBytes != 0 || n.ReservedBytes != 0 || n.RecordBytes != 0 {
		t.Errorf("an empty store counts %+v", n)
	}
}

func TestRefused(t *testing.T) {
	s := open(t, Config{MaxValue: 1 << 20})
	f := func(key string, size int64, want error) {
		t.Helper()
		if _, err := s.Reserve(key, size); !errors.Is(err, want) {
			t.Errorf("Reserve(%d bytes of key, %d) = %v; want %v", len(key), size, err, want)
		}
	}
	f("", 1, ErrKey)
	f(strings.Repeat("k", MaxKey+1), 1, ErrKey)
	f("k", 1<<20+1, ErrTooLarge)
	f("k", -1, ErrTooLarge)
	if n := s.Stats().Refused; n["key"] != 2 || n["too_large"] != 2 {
		t.Errorf("counted %v", n)
	}
	if _, err := Open(Config{MaxBytes: 1000}); err == nil {
		t.Error("a store of 1000 bytes")
	}
	if _, err := Open(Config{MaxBytes: 8 << 20, Policy: "lfu"}); err == nil {
		t.Error("policy lfu")
	}
}

func TestConditions(t *testing.T) {
	s := open(t, Config{})
	f := func(w When, text string, stored bool) {
		t.Helper()
		if err := put(s, "k", text, 10, Terms{When: w}); (err == nil) != stored {
			t.Errorf("put %s when %d: %v", text, w, err)
		}
	}
	f(IfPresent, "a", false)
	f(IfAbsent, "b", true)
	f(IfAbsent, "c", false)
	f(IfPresent, "d", true)
	if text, _ := get(s, "k", nobody, 1); text != "d" {
		t.Errorf("value is %q", text)
	}
}

// A leased value is not evicted, and outlives its key.
func TestLeases(t *testing.T) {
	s := open(t, Config{})
	must(t, put(s, "a", "aa", 1<<20, Terms{}))
	l := s.Get(t.Context(), "a", nobody)
	for i := range 30 {
		must(t, put(s, string(rune('b'+i)), "bb", 1<<20, Terms{}))
	}
	if text, _ := get(s, "a", nobody, 2); text != "aa" {
		t.Errorf("a leased value was evicted: %q", text)
	}
	must(t, put(s, "a", "cc", 1<<20, Terms{}))
	if text, _ := get(s, "a", nobody, 2); text != "cc" {
		t.Errorf("the new value is %q", text)
	}
	s.Delete("a")
	for i := range 30 {
		must(t, put(s, string(rune('b'+i)), "dd", 1<<20, Terms{}))
	}
	for _, p := range l.Pieces() {
		if strings.Trim(string(p), "a") != "" {
			t.Fatal("the bytes of a lease changed")
		}
	}
	l.Release()
}

// A store full of leases refuses values, accepts them again when a lease ends, and frees aborted ones.
func TestFullOfLeases(t *testing.T) {
	s := open(t, Config{})
	var leases []*Lease
	for i := range 7 {
		key := string(rune('a' + i))
		must(t, put(s, key, key, 1<<20, Terms{}))
		leases = append(leases, s.Get(t.Context(), key, nobody))
	}
	if err := put(s, "z", "z", 1<<20, Terms{}); !errors.Is(err, ErrFull) {
		t.Errorf("put into a full store: %v", err)
	}
	leases[3].Release()
	f, err := s.Reserve("z", 1<<20)
	must(t, err)
	if err := put(s, "y", "y", 1<<20, Terms{}); !errors.Is(err, ErrFull) {
		t.Errorf("put beside a filling: %v", err)
	}
	f.Abort()
	must(t, put(s, "y", "y", 1<<20, Terms{}))
	for _, l := range leases {
		l.Release()
	}
}

func TestPromises(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{})
		flood := func() {
			for i := range 20 {
				must(t, put(s, string(rune('A'+i)), "x", 1<<20, Terms{}))
			}
		}
		check := func(when string, want bool) {
			t.Helper()
			flood()
			if got := s.Exists("k", nobody, 0); got != want {
				t.Errorf("%s: there %v; want %v", when, got, want)
			}
		}
		renew := func() { must(t, put(s, "k", "k", 1<<20, Terms{})) }
		renew()
		check("nobody was promised anything", false)
		renew()
		s.Exists("k", alice, 30*time.Second)
		check("promised", true)
		time.Sleep(29 * time.Second)
		check("29 s later", true)
		time.Sleep(time.Second)
		check("30 s later", false)

		renew()
		s.Exists("k", alice, 30*time.Second)
		get(s, "k", bob, 1)
		check("another client read it", true)
		get(s, "k", alice, 1)
		check("read", false)

		renew()
		s.Exists("k", alice, 30*time.Second)
		s.Exists("k", alice, 30*time.Second)
		get(s, "k", alice, 1)
		check("promised twice, read once", true)
		get(s, "k", alice, 1)
		check("read twice", false)

		renew()
		s.Exists("k", alice, 30*time.Second)
		renew()
		check("promised, and put anew", true)
		s.Delete("k")
		check("deleted", false)

		must(t, put(s, "k", "k", 10, Terms{Life: time.Second}))
		s.Exists("k", alice, 30*time.Second)
		time.Sleep(2 * time.Second)
		if text, _ := get(s, "k", alice, 1); text != "k" {
			t.Error("a promised value expired")
		}
		if text, _ := get(s, "k", alice, 1); text != "" {
			t.Error("an expired value is there after its promise")
		}
	})
}

func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, Config{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { s.Run(ctx); close(done) }()
		must(t, put(s, "k", "k", 10, Terms{Life: 10 * time.Second}))
		must(t, put(s, "forever", "k", 10, Terms{}))
		time.Sleep(10*time.Second - time.Millisecond)
		if _, end, ok := s.Info("k"); !ok || time.Until(end) != time.Millisecond {
			t.Errorf("Info = %v, %v", time.Until(end), ok)
		}
		time.Sleep(time.Millisecond)
		if s.Exists("k", nobody, 0) {
			t.Error("it is there after its life")
		}
		must(t, put(s, "k", "k", 10, Terms{Life: time.Second}))
		time.Sleep(2 * time.Second)
		if n := s.Stats(); n.Entries != 1 || n.Expirations != 2 {
			t.Errorf("%d entries, %d expired; want 1, 2", n.Entries, n.Expirations)
		}
		stop()
		<-done
	})
}

// The bytes of records bound the number of tiny values, not the arena.
func TestRecordsAreBounded(t *testing.T) {
	s := open(t, Config{MaxBytes: 4 << 20})
	for i := range 2000 {
		must(t, put(s, strings.Repeat("k", 100)+string(rune(i)), "m", 28, Terms{}))
	}
	n := s.Stats()
	if n.RecordBytes > 4<<20/recordShare || n.Evictions == 0 || n.Entries < 100 {
		t.Errorf("%d entries, records of %d bytes, %d evictions", n.Entries, n.RecordBytes, n.Evictions)
	}
}

func TestCloseWaitsForReaders(t *testing.T) {
	s, err := Open(Config{MaxBytes: 8 << 20})
	must(t, err)
	must(t, put(s, "k", "k", 10, Terms{}))
	l := s.Get(t.Context(), "k", nobody)
	if err := s.Close(10 * time.Millisecond); err == nil {
		t.Error("closed beside a reader")
	}
	if s.Get(t.Context(), "k", nobody) != nil || s.Exists("k", nobody, 0) || put(s, "j", "j", 1, Terms{}) == nil {
		t.Error("a closed store answers")
	}
	l.Release()
	must(t, s.Close(time.Second))
}
