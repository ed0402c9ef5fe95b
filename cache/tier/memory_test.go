package tier

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func memoryOnly(t testing.TB, maxBytes int) *Store {
	t.Helper()
	s, err := New(Config{MaxBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestExpiryIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memoryOnly(t, 0)
		const ttl = 90 * time.Second
		s.Set("ns", "set", nil, ttl)
		s.SetIfAbsent("ns", "absent", nil, ttl)
		s.CompareAndSwap("ns", "swap", nil, nil, ttl)
		s.Add("ns", "add", 1, ttl)
		s.Set("ns", "touched", nil, time.Second)
		s.Touch("ns", "touched", ttl)
		s.Set("ns", "shortened", nil, time.Hour)
		s.Touch("ns", "shortened", ttl)
		s.Set("ns", "ever", nil, 0)
		keys := []string{"set", "absent", "swap", "add", "touched", "shortened"}
		time.Sleep(ttl - time.Millisecond)
		for _, key := range keys {
			if _, ok := s.Get("ns", key); !ok {
				t.Errorf("%s expired 1 ms early", key)
			}
		}
		time.Sleep(time.Millisecond)
		for _, key := range keys {
			wantNone(t, s, key)
		}
		want(t, s, "ever", "")
		if n, _ := s.Add("ns", "add", 1, ttl); n != 1 {
			t.Errorf("a counter went on after its expiry: %d", n)
		}
	})
}

func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memoryOnly(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go s.Run(ctx)
		const n = 3 * walkStep
		for i := range n {
			s.Set("ns", fmt.Sprint(i), nil, time.Duration(1+i%10)*time.Second)
			s.Touch("ns", fmt.Sprint(i), time.Duration(11+i%10)*time.Second)
		}
		time.Sleep(10500 * time.Millisecond)
		if st := s.Stats(); st.Entries != n {
			t.Errorf("%d entries; want %d: all were touched", st.Entries, n)
		}
		time.Sleep(12 * time.Second)
		st := s.Stats()
		if st.Entries != 0 || st.Bytes != 0 || st.Expirations != n || st.Namespaces["ns"].Expirations != n {
			t.Errorf("after everything expired: %+v", st)
		}
	})
}

func TestEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memoryOnly(t, 0)
		s.Set("ns", "gone", nil, time.Second)
		s.Set("ns", "a", []byte("1"), time.Minute)
		s.Set("ns", "b", []byte("2"), 0)
		s.Set("other", "c", nil, 0)
		time.Sleep(time.Second)
		got := map[string]string{}
		s.Each("ns", func(key string, value []byte, expires time.Time) bool {
			if (key == "b") != expires.IsZero() || key == "a" && !expires.Equal(time.Now().Add(59*time.Second)) {
				t.Errorf("%s expires at %v", key, expires)
			}
			got[key] = string(value)
			return true
		})
		if len(got) != 2 || got["a"] != "1" || got["b"] != "2" {
			t.Errorf("Each: %v", got)
		}
		n := 0
		s.Each("ns", func(string, []byte, time.Time) bool { n++; return false })
		if n != 1 {
			t.Errorf("Each called %d times after false", n)
		}
	})
}

// The caller may reuse its buffers.
func TestValuesAreCopied(t *testing.T) {
	table(t, func(t *testing.T, s *Store) {
		b := []byte("value")
		s.Set("ns", "a", b, 0)
		s.SetIfAbsent("ns", "b", b, 0)
		s.CompareAndSwap("ns", "c", nil, b, 0)
		copy(b, "XXXXX")
		for _, key := range []string{"a", "b", "c"} {
			want(t, s, key, "value")
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	const maxBytes = 8 << 20
	s := memoryOnly(t, maxBytes)
	before := heapNow()
	for i := range 100_000 {
		ns := []string{"flood", "flood", "flood", "small"}[i%4]
		s.Set(ns, fmt.Sprintf("%036d", i), bytes.Repeat([]byte{'x'}, i%200), time.Hour)
		if st := s.l1; i%1000 == 0 && (st.bytes > maxBytes || st.spaces["flood"].bytes > maxBytes/2) {
			t.Fatalf("%d bytes, of them %d flood; the limit is %d", st.bytes, st.spaces["flood"].bytes, maxBytes)
		}
	}
	grown := heapNow() - before
	st := s.Stats()
	t.Logf("%d entries, %d bytes counted, heap grew by %d (%.2f)", st.Entries, st.Bytes, grown, float64(grown)/float64(st.Bytes))
	if grown > maxBytes*5/4 {
		t.Errorf("the heap grew by %d for a limit of %d", grown, maxBytes)
	}
	if st.Evictions == 0 || uint64(st.Entries)+st.Evictions != 100_000 {
		t.Errorf("%d entries + %d evicted != 100,000", st.Entries, st.Evictions)
	}
	runtime.KeepAlive(s)
}

func heapNow() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

func TestEvictionTakesTheLeastRecentlyUsed(t *testing.T) {
	const n = 10
	s := memoryOnly(t, 2*n*(overhead+1))
	for i := range n {
		s.Set("ns", fmt.Sprint(i), nil, 0)
	}
	want(t, s, "0", "")
	s.Set("ns", "x", nil, 0) // the namespace is full
	want(t, s, "0", "")
	wantNone(t, s, "1")
	for i := range n { // all is full: another namespace takes from itself, not from the smaller or equal ones
		s.Set("two", fmt.Sprint(i), nil, 0)
	}
	s.Set("three", "a", nil, 0)
	if _, ok := s.Get("three", "a"); !ok {
		t.Error("a new namespace found no room beside two full ones")
	}
	if st := s.Stats(); st.Bytes > s.l1.max || st.Entries != 2*n {
		t.Errorf("%+v", st)
	}
}

func TestRefused(t *testing.T) {
	s := memoryOnly(t, 2000)
	big := make([]byte, 1000)
	s.Set("ns", "k", []byte("small"), 0)
	s.Set("ns", "k", big, 0)
	want(t, s, "k", "small")
	if now, set := s.SetIfAbsent("ns", "big", big, 0); set || now != nil {
		t.Errorf("SetIfAbsent of a value too large: %d bytes, %v", len(now), set)
	}
	if s.CompareAndSwap("ns", "big", nil, big, 0) {
		t.Error("CompareAndSwap stored a value too large")
	}
	if n := s.Stats().Refused; n != 3 {
		t.Errorf("%d refused; want 3", n)
	}
	many := memoryOnly(t, 0)
	for i := range maxSpaces {
		many.Set(fmt.Sprint(i), "k", nil, 0)
	}
	if now, set := many.SetIfAbsent("one too many", "k", nil, 0); set || now != nil {
		t.Error("a namespace too many was taken")
	}
	many.Delete("7", "k")
	if _, set := many.SetIfAbsent("fits now", "k", nil, 0); !set {
		t.Error("the place of an empty namespace was not used")
	}
}

// What L2 answered while the key was changed here is not believed, and what stands here is doubted.
func TestAnswersThatCameLate(t *testing.T) {
	const now = int64(time.Hour)
	k := id{"ns", "k"}
	f := func(name string, want bool, value string, change func(m *memory)) {
		t.Helper()
		m := newMemory(Config{MaxBytes: 1 << 20})
		m.put(k, write{value: []byte("old"), expires: never}, 0)
		ticket := m.read(k, now, 0).ticket
		change(m)
		m.adopt(k, answer{ticket: ticket, value: []byte("answer"), expires: never}, now)
		got := m.read(k, now, 0)
		if fresh := got.live && got.checked == now; fresh != want || string(got.value) != value {
			t.Errorf("%s: %q, fresh %v; want %q, %v", name, got.value, fresh, value, want)
		}
	}
	f("nothing happened", true, "answer", func(*memory) {})
	f("set meanwhile", false, "new", func(m *memory) { m.put(k, write{value: []byte("new"), expires: never}, now) })
	f("touched meanwhile", false, "old", func(m *memory) { m.touch(k, never, now, paid) })
	f("deleted meanwhile", false, "", func(m *memory) { m.put(k, write{expires: never, owes: oweDelete}, now) })
	f("removed meanwhile", false, "", func(m *memory) { m.delete(k, now) })
	f("not told yet", false, "new", func(m *memory) { m.put(k, write{value: []byte("new"), expires: never, owes: oweSet}, 0) })
}

// The oracle is a map with a clock.
func TestOracle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type held struct {
			value   string
			expires time.Time
		}
		s, model := memoryOnly(t, 0), map[string]held{}
		r := rand.New(rand.NewPCG(1, 2))
		get := func(key string) (string, bool) {
			h, ok := model[key]
			return h.value, ok && time.Now().Before(h.expires)
		}
		for step := range 50_000 {
			key, value := fmt.Sprint(r.IntN(50)), fmt.Sprint(r.IntN(3))
			ttl := time.Duration(1+r.IntN(100)) * time.Millisecond
			old, live := get(key)
			put := held{value, time.Now().Add(ttl)}
			switch op := r.IntN(7); op {
			case 0:
				s.Set("ns", key, []byte(value), ttl)
				model[key] = put
			case 1:
				now, set := s.SetIfAbsent("ns", key, []byte(value), ttl)
				if set == live || live && string(now) != old || !live && string(now) != value {
					t.Fatalf("step %d: SetIfAbsent(%s) = %q, %v; there was %q, %v", step, key, now, set, old, live)
				}
				if set {
					model[key] = put
				}
			case 2:
				if got := s.Touch("ns", key, ttl); got != live {
					t.Fatalf("step %d: Touch(%s) = %v", step, key, got)
				}
				model[key] = held{old, map[bool]time.Time{true: put.expires}[live]}
			case 3:
				s.Delete("ns", key)
				delete(model, key)
			case 4:
				if got := s.CompareAndSwap("ns", key, []byte("1"), []byte(value), ttl); got != (live && old == "1") {
					t.Fatalf("step %d: CompareAndSwap(%s) = %v; there was %q, %v", step, key, got, old, live)
				} else if got {
					model[key] = put
				}
			case 5:
				s.l1.sweep(s.now())
			}
			time.Sleep(time.Duration(r.IntN(3000)) * time.Microsecond)
			wantValue, wantOK := get(key)
			if v, ok := s.Get("ns", key); ok != wantOK || ok && string(v) != wantValue {
				t.Fatalf("step %d: Get(%s) = %q, %v; want %q, %v", step, key, v, ok, wantValue, wantOK)
			}
		}
		checkMemory(t, s.l1)
	})
}

// checkMemory recounts everything.
func checkMemory(t *testing.T, m *memory) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	bytes, entries := 0, 0
	for name, s := range m.spaces {
		mine := 0
		for key, e := range s.entries {
			mine += e.cost()
			if e.key != key || e.space != s || m.due[e.at-1] != e || e.due > e.expires {
				t.Errorf("%s/%s: entry out of place", name, key)
			}
		}
		if mine != s.bytes {
			t.Errorf("%s: %d bytes counted, %d there", name, s.bytes, mine)
		}
		bytes += mine
		entries += checkShelf(t, name, &s.shelf)
	}
	common := 0
	for name, o := range m.owners {
		entries += checkShelf(t, name, &o.promised) + checkShelf(t, name, &o.loose)
		common += m.beyond(o)
		if o.bytes() == 0 {
			t.Errorf("the owner %q holds nothing and is still known", name)
		}
	}
	if common != m.common {
		t.Errorf("owners hold %d bytes beyond their parts; counted are %d", common, m.common)
	}
	if bytes != m.bytes || entries != m.entries || entries != len(m.due) || m.bytes > m.max {
		t.Errorf("%d bytes and %d entries counted, %d and %d there, %d in the heap", m.bytes, m.entries, bytes, entries, len(m.due))
	}
}

// Run with -race.
func TestHammer(t *testing.T) {
	table(t, func(t *testing.T, s *Store) {
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 0))
				for range 2000 {
					ns, key := fmt.Sprint(r.IntN(3)), fmt.Sprint(r.IntN(40))
					value, ttl := []byte(strings.Repeat("x", r.IntN(100))), time.Duration(r.IntN(20))*time.Millisecond
					switch r.IntN(8) {
					case 0:
						s.Set(ns, key, value, ttl)
					case 1:
						if now, _ := s.SetIfAbsent(ns, key, value, ttl); now == nil {
							t.Error("SetIfAbsent left nothing")
						}
					case 2:
						s.Touch(ns, key, ttl)
					case 3:
						s.Delete(ns, key)
					case 4:
						s.CompareAndSwap(ns, key, nil, value, ttl)
					case 5:
						s.Add(ns, "n"+key, 1, ttl)
					case 6:
						s.Each(ns, func(string, []byte, time.Time) bool { return true })
					default:
						s.Get(ns, key)
					}
				}
			})
		}
		wg.Wait()
		checkMemory(t, s.l1)
		if s.Stats().Refused != 0 {
			t.Error("something was refused")
		}
	})
}

// One sweep removes all that is expired, however much it is.
func TestOneSweep(t *testing.T) {
	m := newMemory(Config{MaxBytes: 64 << 20})
	for i := range 3*walkStep + 1 {
		m.put(id{"ns", fmt.Sprint(i)}, write{expires: int64(i)}, 0)
	}
	m.sweep(int64(3 * walkStep))
	if m.entries != 0 || m.bytes != 0 {
		t.Errorf("%d entries of %d bytes are left", m.entries, m.bytes)
	}
}

// When all is full the largest namespace gives way, and what is given up unpaid is counted.
func TestTheLargestGivesWay(t *testing.T) {
	m := newMemory(Config{MaxBytes: 20 * (overhead + 2)})
	put := func(ns string, n int, owes debt) {
		for i := range n {
			m.put(id{ns, fmt.Sprintf("%02d", i)}, write{expires: never, owes: owes}, 0)
		}
	}
	put("large", 9, oweSet)
	put("middle", 6, paid)
	put("small", 5, paid)
	m.put(id{"small", "xx"}, write{expires: never}, 0)
	if l, s := len(m.spaces["large"].entries), len(m.spaces["small"].entries); l != 8 || s != 6 {
		t.Errorf("%d and %d are left; want 8 and 6", l, s)
	}
	if m.lost != 1 || m.spaces["large"].evicted != 1 {
		t.Errorf("%d lost, %d evicted; want 1", m.lost, m.spaces["large"].evicted)
	}
}
