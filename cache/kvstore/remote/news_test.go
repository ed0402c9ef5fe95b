package remote

import (
	"testing"

	"github.com/warmpath/warmpath/cache/parts/recent"
)

// FuzzNews: from any message a daemon accepts no value with a negative size or time, and every fact that it accepts
// could come from itself.
func FuzzNews(f *testing.F) {
	n := newNews(&servers{})
	n.tell("a key", fact{size: 1 << 20, ends: 12345})
	n.tell("", fact{})
	good := n.take()
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(n.sender + "\xff\xff"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		other, back := newNews(&servers{}), newNews(&servers{})
		err := other.hear(b, func(key string, f fact) {
			if f.size < 0 || f.ends < 0 {
				t.Errorf("%q has %d bytes until %d", key, f.size, f.ends)
			}
			back.tell(key, f)
		})
		if again := back.take(); err == nil && len(again) > 0 && string(again[senderBytes:]) != string(b[senderBytes:]) {
			t.Errorf("%q is told on as %q", b, again)
		}
	})
}

// TestNews: a daemon learns from the messages of others, not from its own.
func TestNews(t *testing.T) {
	a, b := newNews(&servers{}), newNews(&servers{})
	a.tell("k", fact{size: 5})
	a.tell("l", fact{size: 6, ends: 7})
	m := a.take()
	heard := map[string]fact{}
	learn := func(key string, f fact) { heard[key] = f }
	if err := a.hear(m, learn); err != nil || len(heard) != 0 {
		t.Errorf("it heard itself: %v, %v", heard, err)
	}
	if err := b.hear(m, learn); err != nil || len(heard) != 2 || heard["k"].size != 5 || heard["l"].ends != 7 {
		t.Errorf("%v, %v", heard, err)
	}
	if a.take() != nil {
		t.Error("it tells it twice")
	}
}

// TestIndexIsBounded: facts without use are dropped first.
func TestIndexIsBounded(t *testing.T) {
	x := newIndex()
	x.facts = recent.New[mark, fact](100)
	for i := range mark(1000) {
		x.add(i, fact{size: 1})
		if _, known := x.find(0, now()); !known {
			t.Fatalf("what is asked for is forgotten after %d", i)
		}
	}
	if n := x.length(); n > 200 {
		t.Errorf("%d facts", n)
	}
	if _, known := x.find(500, now()); known {
		t.Error("an old fact is there")
	}
	x.miss(7, now())
	if !x.missed(7, now()) || x.missed(8, now()) || x.missed(7, now().Add(absentTime)) {
		t.Error("a miss is known for a second")
	}
}

// TestLimitOf: the memory limit in the servers' answers.
func TestLimitOf(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "# Memory\r\nused_memory:5\r\nmaxmemory:1048576\r\nx:1\r\n": 1 << 20,
		"maxmemory:0\r\n": 0, "maxmemory:-1\r\n": 0, "maxmemory:much\r\n": 0} {
		if got := limitOf(text); got != want {
			t.Errorf("limitOf(%q) = %d; want %d", text, got, want)
		}
	}
}
