package catalog

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAgainstASortedSlice compares every page after random changes with a slice that is sorted and searched.
func TestAgainstASortedSlice(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	c := New(0)
	held := map[string]int64{}
	key := func() string {
		parts := []string{"m", "model-a", "model-b@2", "@0", "@1", "\x00", "\xff", "é", ""}
		k := ""
		for range 1 + rng.IntN(4) {
			k += parts[rng.IntN(len(parts))]
		}
		return k + fmt.Sprint(rng.IntN(30))
	}
	for i := range 4000 {
		k := key()
		if rng.IntN(3) > 0 {
			size := int64(rng.IntN(100))
			c.Put(Item{Key: k, Size: size})
			held[k] = size
		} else {
			_, was := held[k]
			if c.Delete(k) != was {
				t.Fatalf("step %d: deletion of %q is not %v", i, k, was)
			}
			delete(held, k)
		}
		if i%10 == 0 {
			prefix, after, limit := key(), key(), 1+rng.IntN(40)
			prefix = prefix[:rng.IntN(len(prefix)+1)]
			if rng.IntN(2) == 0 {
				after = prefix + after
			}
			comparePage(t, c, held, prefix, after, limit)
		}
	}
	sum := int64(0)
	for _, size := range held {
		sum += size
	}
	if s := c.Stats(); s.Keys != len(held) || s.ValueBytes != sum {
		t.Errorf("%+v; want %d keys of %d bytes", s, len(held), sum)
	}
	for k := range held {
		c.Delete(k)
	}
	if s := c.Stats(); s != (Stats{}) || c.used.First != nil || c.used.Last != nil {
		t.Errorf("empty: %+v", s)
	}
}

func comparePage(t *testing.T, c *Catalog, held map[string]int64, prefix, after string, limit int) {
	t.Helper()
	var want []string
	for k := range held {
		if strings.HasPrefix(k, prefix) && k > after {
			want = append(want, k)
		}
	}
	slices.Sort(want)
	want = want[:min(limit, len(want))]
	var got []string
	for _, i := range c.Page(prefix, after, limit) {
		got = append(got, i.Key)
		if i.Size != held[i.Key] {
			t.Errorf("%q has %d bytes; want %d", i.Key, i.Size, held[i.Key])
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("page of %q after %q: %q; want %q", prefix, after, got, want)
	}
}

// A bounded catalogue drops the key that was not used for longest.
func TestBound(t *testing.T) {
	c := New(3 * (recordBytes + 1))
	for _, k := range []string{"a", "b", "c"} {
		c.Put(Item{Key: k, Size: 10})
	}
	c.Get("a")
	c.Put(Item{Key: "d", Size: 10})
	c.Put(Item{Key: "c", Size: 20, Expires: time.Unix(9, 0)})
	c.Put(Item{Key: "e", Size: 10})
	got := ""
	for _, i := range c.Page("", "", 9) {
		got += i.Key
	}
	if s := c.Stats(); got != "cde" || s.Dropped != 2 || s.Bytes > c.maxBytes || s.ValueBytes != 40 {
		t.Errorf("left %q, %+v; want c, d, e and 2 dropped", got, s)
	}
	if i, ok := c.Get("c"); !ok || i.Size != 20 || !i.Expires.Equal(time.Unix(9, 0)) {
		t.Errorf("%+v, %v", i, ok)
	}
}

func TestNothingToList(t *testing.T) {
	c := New(0)
	c.Put(Item{Key: "b"})
	f := func(prefix, after string, limit, want int) {
		t.Helper()
		if got := len(c.Page(prefix, after, limit)); got != want {
			t.Errorf("page of %q after %q: %d; want %d", prefix, after, got, want)
		}
	}
	f("", "", 1, 1)
	f("", "", 0, 0)
	f("", "b", 9, 0)
	f("b", "", 9, 1)
	f("b", "c", 9, 0)
	f("c", "", 9, 0)
	f("", strings.Repeat("a", 10_000), 9, 1)
	f("", strings.Repeat("b", 10_000), 9, 0)
	if c.Delete("c") {
		t.Error("deleted what is not there")
	}
	if _, ok := c.Get("c"); ok {
		t.Error("got what is not there")
	}
}

func TestManyAtOnce(t *testing.T) {
	c := New(100 * recordBytes)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range 2000 {
				k := fmt.Sprint(rng.IntN(300))
				switch rng.IntN(4) {
				case 0:
					c.Delete(k)
				case 1:
					c.Page(k[:1], k, 10)
				case 2:
					c.Get(k)
				default:
					c.Put(Item{Key: k, Size: 1})
				}
			}
		})
	}
	wg.Wait()
	s := c.Stats()
	if got := c.Page("", "", 1000); s.Keys != len(got) || s.ValueBytes != int64(len(got)) || s.Bytes > 100*recordBytes {
		t.Errorf("%d listed, %+v", len(got), s)
	}
}

// lmKey returns a key in LMCache's form.
func lmKey(i uint64) string {
	return fmt.Sprintf("meta-llama/Llama-3.1-8B-Instruct@2@%d@%016x@bfloat16kv_bytes", i%2, i*0x9e3779b97f4a7c15)
}

// TestRecordBytes measures what a key takes beside its own bytes.
func TestRecordBytes(t *testing.T) {
	const n = 100_000
	keys := make([]string, n)
	for i := range keys {
		keys[i] = lmKey(uint64(i))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := New(0)
	for _, k := range keys {
		c.Put(Item{Key: k})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / n
	if each > recordBytes*1.1 || each < recordBytes/2 {
		t.Errorf("%.0f bytes a key; recordBytes is %d", each, recordBytes)
	}
	t.Logf("%.0f bytes a key", each)
	runtime.KeepAlive(keys)
	runtime.KeepAlive(c)
}

func BenchmarkPut(b *testing.B) {
	c := New(0)
	keys := make([]string, 1<<16)
	for i := range keys {
		keys[i] = lmKey(uint64(i))
	}
	for i := 0; b.Loop(); i++ {
		k := keys[i%len(keys)]
		if i/len(keys)%2 == 0 {
			c.Put(Item{Key: k, Size: 1})
		} else {
			c.Delete(k)
		}
	}
}

func BenchmarkPage(b *testing.B) {
	c := New(0)
	for i := range uint64(200_000) {
		c.Put(Item{Key: lmKey(i)})
	}
	all := c.Page("", "", 200_000)
	for _, at := range []int{0, 100_000, 199_000} {
		b.Run(fmt.Sprint("after ", at), func(b *testing.B) {
			for b.Loop() {
				if got := len(c.Page("meta", all[at].Key, 500)); got != 500 {
					b.Fatal(got)
				}
			}
		})
	}
}
