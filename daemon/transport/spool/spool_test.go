package spool

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// log is a Log of functions. Any but line may be nil.
type log struct {
	line  func([]byte)
	lost  func(first bool)
	again func(lost int)
	end   func()
}

func (l log) Line(b []byte) { l.line(b) }

func (l log) Lost(first bool) {
	if l.lost != nil {
		l.lost(first)
	}
}

func (l log) Again(lost int) {
	if l.again != nil {
		l.again(lost)
	}
}

func (l log) End() {
	if l.end != nil {
		l.end()
	}
}

// TestStuck: while nobody takes lines those that have room wait, in order. The others are counted, and Lost and Again
// are called once each.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		var got bytes.Buffer
		full, again, ended := 0, []int(nil), false
		s := New(Config{To: log{
			line: func(b []byte) { <-stuck; got.Write(b) },
			lost: func(first bool) {
				if first {
					full++
				}
			},
			again: func(lost int) { again = append(again, lost) },
			end:   func() { ended = true },
		}})
		line := func(i int) string { return fmt.Sprintf("%07d%s\n", i, strings.Repeat("x", 1016)) } // 1 KiB
		put := func(from, n int) {
			for i := range n {
				if m, err := s.Write([]byte(line(from + i))); m != 1024 || err != nil {
					t.Fatalf("%d, %v", m, err)
				}
			}
		}
		put(0, 1)
		synctest.Wait() // it is on its way out
		const room = MaxBytes / 1024
		put(1, room+10)
		if full != 1 || again != nil {
			t.Errorf("full %d times, again %v; want 1 and none", full, again)
		}
		close(stuck)
		synctest.Wait()
		if len(again) != 1 || again[0] != 10 {
			t.Errorf("again %v; want once, 10 lost", again)
		}
		put(room+11, 5)
		if left, _ := s.Close(time.Second); left != 0 || !ended {
			t.Errorf("%d left, ended %v; want none", left, ended)
		}
		if want := 1 + room + 5; got.Len() != want*1024 {
			t.Fatalf("%d bytes came; want %d lines", got.Len(), want)
		}
		for i, l := range strings.SplitAfter(strings.TrimSuffix(got.String(), "\n"), "\n") {
			if i > room {
				i += 10
			}
			if strings.TrimSuffix(l, "\n")+"\n" != line(i) {
				t.Fatalf("want line %d, got %.20q", i, l)
			}
		}
	})
}

// TestCloseOfAStuckSpool: it waits for the limit and returns how many lines are left.
func TestCloseOfAStuckSpool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		s := New(Config{To: log{line: func([]byte) { <-stuck }}})
		for range 3 {
			s.Write([]byte("line\n"))
		}
		before := time.Now()
		if left, lost := s.Close(time.Second); left != 3 || lost != 0 || time.Since(before) != time.Second {
			t.Errorf("%d left after %v; want 3 after 1s", left, time.Since(before))
		}
		close(stuck)
	})
}

// TestBatch: what waits while a write is stuck goes out in whole lines, as many as fit, and a longer one by itself.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		var got []string
		s := New(Config{Batch: 8, To: log{line: func(b []byte) { <-stuck; got = append(got, string(b)) }}})
		s.Write([]byte("0\n"))
		synctest.Wait() // it is on its way out
		for _, line := range []string{"1\n", "22\n", "333\n", "4\n", "longer than that\n", "5\n", "no end"} {
			s.Write([]byte(line))
		}
		close(stuck)
		synctest.Wait()
		if left, _ := s.Close(time.Second); left != 1 { // what has no end is no line
			t.Errorf("%d left", left)
		}
		want := []string{"0\n", "1\n22\n", "333\n4\n", "longer than that\n", "5\nno end"}
		if !slices.Equal(got, want) {
			t.Errorf("%q; want %q", got, want)
		}
	})
}

// TestDelay: lines wait for each other until they are a batch, the delay has passed, or the spool is closed.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards got
		var got []string
		s := New(Config{Batch: 8, Delay: time.Second, To: log{line: func(b []byte) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(b))
		}}})
		f := func(wait time.Duration, want ...string) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(got, want) {
				t.Fatalf("%q; want %q", got, want)
			}
		}
		for range 3 {
			mu.Lock()
			got = nil
			mu.Unlock()
			s.Write([]byte("1\n"))
			f(600 * time.Millisecond)
			s.Write([]byte("22\n"))
			f(399 * time.Millisecond)
			f(time.Millisecond, "1\n22\n")
			s.Write([]byte("1\n"))
			f(0, "1\n22\n")
			s.Write([]byte("longer\n"))
			f(0, "1\n22\n", "1\n", "longer\n")
			s.Write([]byte("longer than that\n"))
			f(0, "1\n22\n", "1\n", "longer\n", "longer than that\n")
		}
		s.Write([]byte("last\n"))
		before := time.Now()
		if left, _ := s.Close(time.Minute); left != 0 || time.Since(before) != 0 {
			t.Errorf("%d left after %v", left, time.Since(before))
		}
	})
}

// TestHammer: of many writers no line is torn, none is lost, and each one's stay in order.
func TestHammer(t *testing.T) {
	var next [8]int
	s := New(Config{To: log{line: func(b []byte) {
		var who, i int
		if n, err := fmt.Sscanf(string(b), "line %d %d\n", &who, &i); n != 2 || err != nil || i != next[who] {
			t.Errorf("%q, %v; want line %d of %d", b, err, next[who], who)
			return
		}
		next[who]++
	}, again: func(lost int) { t.Errorf("%d lost", lost) }}})
	var all sync.WaitGroup
	for who := range next {
		all.Go(func() {
			for i := range 2000 {
				fmt.Fprintf(s, "line %d %d\n", who, i)
			}
		})
	}
	all.Wait()
	if left, _ := s.Close(time.Minute); left != 0 {
		t.Errorf("%d left", left)
	}
	for who, n := range next {
		if n != 2000 {
			t.Errorf("%d lines of %d; want 2000", n, who)
		}
	}
}

// TestNoAllocationALine: a request pays nothing for the queue.
func TestNoAllocationALine(t *testing.T) {
	s := New(Config{To: log{line: func([]byte) {}}})
	line := []byte(strings.Repeat("x", 500) + "\n")
	if n := testing.AllocsPerRun(20_000, func() { s.Write(line) }); n >= 1 {
		t.Errorf("%v allocations a line", n)
	}
	s.Close(time.Minute)
}
